//! The header of an npy array: element type, order and shape.

use std::io::{self, Read};

use super::shape_text;
use crate::error::Problem;

pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// numpy itself refuses headers beyond 10 000 bytes unless told otherwise.
const LONGEST_HEADER: usize = 1 << 16;

/// How one element is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    /// UCS-4 code points, padded with zeros.
    Unicode,
    /// Bytes, padded with zeros.
    Bytes,
}

/// What precedes the elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Bytes per element.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
    /// First index fastest, instead of last.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes of the header itself.
    pub(crate) length: u64,
}

impl Header {
    /// Reads a header, leaving `reader` at the first element.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, Problem> {
        let mut start = [0; 8];
        fill(reader, &mut start)?;
        if &start[..6] != MAGIC {
            return Err(Problem::new(
                "is not in npy format: it does not begin with the mark `\\x93NUMPY`",
                "write it with np.save, np.savez or np.savez_compressed",
            ));
        }
        let (length, prefix) = match start[6] {
            1 => {
                let mut bytes = [0; 2];
                fill(reader, &mut bytes)?;
                (u16::from_le_bytes(bytes) as usize, 10)
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                fill(reader, &mut bytes)?;
                (u32::from_le_bytes(bytes) as usize, 12)
            }
            other => {
                return Err(Problem::new(
                    format!(
                        "has npy format version {other}.{}; expected 1, 2 or 3",
                        start[7]
                    ),
                    "write it again with a current numpy",
                ));
            }
        };
        if length > LONGEST_HEADER {
            return Err(Problem::damaged(format!(
                "declares a header of {length} bytes; at most {LONGEST_HEADER} are expected"
            )));
        }
        let mut text = vec![0; length];
        fill(reader, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        let fields = Scanner { rest: &text }.fields().ok_or_else(|| {
            Problem::damaged("has an npy header that cannot be understood".to_owned())
        })?;
        let (kind, size, big_endian) = element(&fields.descr)?;
        Ok(Self {
            kind,
            size,
            big_endian,
            fortran: fields.fortran_order,
            shape: fields.shape,
            length: prefix + length as u64,
        })
    }

    /// Whether the elements are numbers rather than text.
    pub(crate) fn is_numeric(&self) -> bool {
        !matches!(self.kind, Kind::Unicode | Kind::Bytes)
    }

    /// Number of elements, checked against the bytes that follow the header.
    pub(crate) fn count(&self, bytes_that_follow: u64) -> Result<usize, Problem> {
        let declared = self
            .shape
            .iter()
            .try_fold(1u64, |n, &size| n.checked_mul(size as u64))
            .and_then(|n| n.checked_mul(self.size as u64));
        if declared == Some(bytes_that_follow) {
            return Ok((bytes_that_follow / self.size.max(1) as u64) as usize);
        }
        let needed = match declared {
            Some(bytes) => format!("{bytes} bytes"),
            None => "more bytes than a computer can hold".into(),
        };
        Err(Problem::damaged(format!(
            "declares {} elements of {} bytes, which is {needed}, but {bytes_that_follow} bytes follow",
            shape_text(&self.shape),
            self.size
        )))
    }
}

fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> Result<(), Problem> {
    reader
        .read_exact(bytes)
        .map_err(|failed| match failed.kind() {
            io::ErrorKind::UnexpectedEof => Problem::damaged("ends within its npy header"),
            _ => Problem::damaged(format!("cannot be decoded: {failed}")),
        })
}

/// Element type of a `descr` such as `<f4`.
fn element(descr: &Descr) -> Result<(Kind, usize, bool), Problem> {
    let to_numbers = "convert it before saving: np.asarray(values, dtype=np.float32)";
    let Descr::Plain(text) = descr else {
        return Err(Problem::new(
            "is a structured array (named fields); expected plain numbers",
            "save each field as an array of its own: np.savez(file, x=values['x'], y=values['y'])",
        ));
    };
    let unsupported = || {
        Problem::new(
            format!("has dtype `{text}`; expected numbers: f4, f8, i1 to i8, u1 to u8 or bool"),
            to_numbers,
        )
    };
    let mut letters = text.chars();
    let first = letters.next().ok_or_else(unsupported)?;
    let (order, code) = match first {
        '<' | '>' | '|' | '=' => (first, letters.next().ok_or_else(unsupported)?),
        code => ('|', code),
    };
    if code == 'O' {
        return Err(Problem::new(
            "holds Python objects (dtype object, stored as a pickle); expected numbers",
            to_numbers,
        ));
    }
    let number: usize = letters.as_str().parse().map_err(|_| unsupported())?;
    let (kind, size) = match (code, number) {
        ('b', 1) => (Kind::Bool, 1),
        ('i', 1 | 2 | 4 | 8) => (Kind::Signed, number),
        ('u', 1 | 2 | 4 | 8) => (Kind::Unsigned, number),
        ('f', 4 | 8) => (Kind::Float, number),
        ('U', 1..=0xffff) => (Kind::Unicode, 4 * number),
        ('S', 1..=0xffff) => (Kind::Bytes, number),
        _ => return Err(unsupported()),
    };
    Ok((kind, size, order == '>'))
}

/// The value of `descr`.
#[derive(Debug)]
enum Descr {
    Plain(String),
    Structured,
}

#[derive(Debug)]
struct Fields {
    descr: Descr,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn fields(mut self) -> Option<Fields> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.eat('{')?;
        while self.eat('}').is_none() {
            let key = self.string()?;
            self.eat(':')?;
            match key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => fortran_order = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return None,
            }
            if self.eat(',').is_none() {
                self.eat('}')?;
                break;
            }
        }
        Some(Fields {
            descr: descr?,
            fortran_order: fortran_order?,
            shape: shape?,
        })
    }

    fn eat(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(wanted)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let quote = if self.eat('\'').is_some() {
            '\''
        } else {
            self.eat('"')?;
            '"'
        };
        let (text, rest) = self.rest.split_once(quote)?;
        self.rest = rest;
        Some(text)
    }

    fn boolean(&mut self) -> Option<bool> {
        let rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = rest.strip_prefix(word) {
                self.rest = rest;
                return Some(value);
            }
        }
        None
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        let mut sizes = Vec::new();
        self.eat('(')?;
        while self.eat(')').is_none() {
            let rest = self.rest.trim_start();
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            sizes.push(rest[..digits].parse().ok()?);
            // Python 2 wrote long integers as `3L`.
            self.rest = rest[digits..].trim_start_matches('L');
            if self.eat(',').is_none() {
                self.eat(')')?;
                break;
            }
        }
        Some(sizes)
    }

    fn descr(&mut self) -> Option<Descr> {
        if self.eat('[').is_none() {
            return self.string().map(|text| Descr::Plain(text.to_owned()));
        }
        let mut depth = 1;
        let mut letters = self.rest.chars();
        while depth > 0 {
            match letters.next()? {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
        }
        self.rest = letters.as_str();
        Some(Descr::Structured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An npy header of format version 1 around `dict`.
    fn header(dict: &str) -> Result<Header, Problem> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.as_bytes());
        Header::read(&mut bytes.as_slice())
    }

    #[test]
    fn notation_of_every_python_is_understood() {
        let spaced =
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }  \n").unwrap();
        assert_eq!(
            (spaced.kind, spaced.size, spaced.big_endian),
            (Kind::Float, 4, false)
        );
        assert_eq!(spaced.shape, [3, 2]);
        let dense = header("{\"shape\":(7L,),\"fortran_order\":True,\"descr\":\">i8\"}").unwrap();
        assert_eq!(
            (dense.kind, dense.size, dense.big_endian),
            (Kind::Signed, 8, true)
        );
        assert_eq!((dense.fortran, dense.shape), (true, vec![7]));
        let scalar = header("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap();
        assert!(scalar.shape.is_empty());
    }

    #[test]
    fn dtypes_without_numbers_are_refused_with_a_way_out() {
        let of = |descr: &str| {
            header(&format!(
                "{{'descr': {descr}, 'fortran_order': False, 'shape': (3,), }}"
            ))
            .unwrap_err()
        };
        assert_eq!(
            of("'|O'").message,
            "holds Python objects (dtype object, stored as a pickle); expected numbers"
        );
        assert_eq!(
            of("'|O'").hint,
            "convert it before saving: np.asarray(values, dtype=np.float32)"
        );
        assert_eq!(
            of("'<c16'").message,
            "has dtype `<c16`; expected numbers: f4, f8, i1 to i8, u1 to u8 or bool"
        );
        assert_eq!(
            of("[('x', '<f4'), ('y', '<f4', (2,))]").message,
            "is a structured array (named fields); expected plain numbers"
        );
        for odd in [
            "''",
            "'<'",
            "'f'",
            "'<f3'",
            "'<fé'",
            "'<U99999999999999999999'",
        ] {
            assert!(of(odd).message.contains("has dtype"), "{odd}");
        }
    }

    #[test]
    fn nonsense_is_damaged() {
        for dict in [
            "",
            "{",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -2), }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,), }",
            "{'descr': [('x', '<f4'), 'fortran_order': False, 'shape': (3,), }",
        ] {
            let problem = header(dict).unwrap_err();
            assert_eq!(
                problem.message, "has an npy header that cannot be understood",
                "{dict}"
            );
        }
    }

    #[test]
    fn a_shape_must_account_for_every_byte() {
        let three = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }").unwrap();
        assert_eq!(three.count(24), Ok(3));
        assert_eq!(
            three.count(20).unwrap_err().message,
            "declares 3 elements of 8 bytes, which is 24 bytes, but 20 bytes follow"
        );
        let dict = format!(
            "{{'descr': '<f8', 'fortran_order': False, 'shape': ({0}, {0}), }}",
            usize::MAX
        );
        assert!(
            header(&dict)
                .unwrap()
                .count(20)
                .unwrap_err()
                .message
                .contains("more bytes than a computer can hold")
        );
    }
}
