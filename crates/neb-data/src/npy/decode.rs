//! The elements of an npy array, decoded in pieces as they arrive.

use std::io::{self, Read};

use super::header::{Header, Kind};
use crate::error::Problem;
use crate::flaws::{Flaws, Found};

/// Bytes decoded at a time: a multiple of every element size.
const PIECE: usize = 1 << 16;

/// No table of column names is longer.
const LONGEST_TEXT: usize = 1 << 22;

/// An array of any number of dimensions: last index fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct NdArray {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// All values.
    pub values: Vec<f32>,
}

/// Reads an array of numbers that takes `length` bytes with its header.
pub(crate) fn read_array(
    reader: &mut impl Read,
    length: u64,
    flaws: &mut Flaws,
) -> Result<NdArray, Problem> {
    let header = Header::read(reader)?;
    if !header.is_numeric() {
        return Err(Problem::new(
            "holds text; expected numbers",
            "select an array of numbers",
        ));
    }
    let count = header.count(length.saturating_sub(header.length))?;
    let values = read_values(reader, &header, count, flaws)?;
    Ok(NdArray {
        shape: header.shape,
        values,
    })
}

/// Reads `count` numbers as `f32` in C order (last index fastest). Values that are not finite as `f32` go to `flaws`, at
/// row and column of the array seen as `shape[0]` rows.
///
/// Integers and `f64` are rounded to the nearest `f32` (integers are exact up to 2^24).
fn read_values(
    reader: &mut impl Read,
    header: &Header,
    count: usize,
    flaws: &mut Flaws,
) -> Result<Vec<f32>, Problem> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| too_big(count))?;
    let mut piece = vec![0; PIECE.min(count.saturating_mul(header.size))];
    while values.len() < count {
        let wanted = (count - values.len()).min(PIECE / header.size);
        let bytes = &mut piece[..wanted * header.size];
        fill(reader, bytes, || values.len(), count)?;
        let start = values.len();
        append(header, bytes, &mut values);
        for (index, value) in (start..).zip(&values[start..]) {
            if !value.is_finite() {
                let at = (index - start) * header.size;
                let found = number(header, &bytes[at..at + header.size]);
                let index = index_in_c_order(header, index);
                let cols = header.shape.iter().skip(1).product::<usize>().max(1);
                flaws.add(index / cols, index % cols, Found::Number(found));
            }
        }
    }
    expect_end(reader)?;
    if header.fortran && header.shape.len() > 1 {
        return transposed(header, &values);
    }
    Ok(values)
}

/// Reads `count` strings.
pub(crate) fn read_text(
    reader: &mut impl Read,
    header: &Header,
    count: usize,
) -> Result<Vec<String>, Problem> {
    let length = count.saturating_mul(header.size);
    if length > LONGEST_TEXT {
        return Err(Problem::damaged("is too long for a list of column names"));
    }
    let mut bytes = vec![0; length];
    fill(reader, &mut bytes, || 0, count)?;
    expect_end(reader)?;
    let text = bytes
        .chunks_exact(header.size)
        .map(|item| match header.kind {
            Kind::Unicode => item
                .chunks_exact(4)
                .map(|code| u32::from_le_bytes(ordered(header, code)))
                .take_while(|&code| code != 0)
                .map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
            _ => String::from_utf8_lossy(item)
                .trim_end_matches('\0')
                .to_owned(),
        });
    Ok(text.collect())
}

fn append(header: &Header, bytes: &[u8], values: &mut Vec<f32>) {
    fn each<const N: usize>(
        header: &Header,
        bytes: &[u8],
        values: &mut Vec<f32>,
        convert: impl Fn([u8; N]) -> f32,
    ) {
        let elements = bytes.chunks_exact(N);
        values.extend(elements.map(|element| convert(ordered(header, element))));
    }
    match (header.kind, header.size) {
        (Kind::Float, 4) => each(header, bytes, values, f32::from_le_bytes),
        (Kind::Float, _) => each(header, bytes, values, |b| f64::from_le_bytes(b) as f32),
        (Kind::Signed, 1) => each(header, bytes, values, |b| i8::from_le_bytes(b).into()),
        (Kind::Signed, 2) => each(header, bytes, values, |b| i16::from_le_bytes(b).into()),
        (Kind::Signed, 4) => each(header, bytes, values, |b| i32::from_le_bytes(b) as f32),
        (Kind::Signed, _) => each(header, bytes, values, |b| i64::from_le_bytes(b) as f32),
        (Kind::Unsigned, 1) => each(header, bytes, values, |b| u8::from_le_bytes(b).into()),
        (Kind::Unsigned, 2) => each(header, bytes, values, |b| u16::from_le_bytes(b).into()),
        (Kind::Unsigned, 4) => each(header, bytes, values, |b| u32::from_le_bytes(b) as f32),
        (Kind::Unsigned, _) => each(header, bytes, values, |b| u64::from_le_bytes(b) as f32),
        (Kind::Bool, _) => each(header, bytes, values, |[b]| f32::from(u8::from(b != 0))),
        (Kind::Unicode | Kind::Bytes, _) => unreachable!("text is never decoded as numbers"),
    }
}

/// One floating-point element at full precision (the other kinds are always finite).
fn number(header: &Header, element: &[u8]) -> f64 {
    match header.size {
        4 => f32::from_le_bytes(ordered(header, element)).into(),
        _ => f64::from_le_bytes(ordered(header, element)),
    }
}

/// The bytes of one element, least significant first.
fn ordered<const N: usize>(header: &Header, element: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(element);
    if header.big_endian {
        bytes.reverse();
    }
    bytes
}

/// Where the element at `index` of the file belongs when the last index runs fastest.
fn index_in_c_order(header: &Header, index: usize) -> usize {
    if !header.fortran {
        return index;
    }
    let (mut rest, mut target, mut stride) = (index, 0, header.shape.iter().product::<usize>());
    for &size in &header.shape {
        stride /= size;
        target += rest % size * stride;
        rest /= size;
    }
    target
}

fn transposed(header: &Header, values: &[f32]) -> Result<Vec<f32>, Problem> {
    let mut result = Vec::new();
    result
        .try_reserve_exact(values.len())
        .map_err(|_| too_big(values.len()))?;
    result.resize(values.len(), 0.0);
    for (index, &value) in values.iter().enumerate() {
        result[index_in_c_order(header, index)] = value;
    }
    Ok(result)
}

fn fill(
    reader: &mut impl Read,
    bytes: &mut [u8],
    decoded: impl Fn() -> usize,
    count: usize,
) -> Result<(), Problem> {
    reader
        .read_exact(bytes)
        .map_err(|failed| match failed.kind() {
            io::ErrorKind::UnexpectedEof => Problem::damaged(format!(
                "is cut short: it declares {count} values and ends after about {}",
                decoded()
            )),
            _ => undecodable(&failed),
        })
}

/// Reading past the end also makes the zip reader compare the checksum.
fn expect_end(reader: &mut impl Read) -> Result<(), Problem> {
    match reader.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Problem::damaged(
            "holds more bytes than its header declares",
        )),
        Err(failed) => Err(undecodable(&failed)),
    }
}

fn undecodable(failed: &io::Error) -> Problem {
    Problem::damaged(format!("cannot be decoded: {failed}"))
}

fn too_big(count: usize) -> Problem {
    Problem::new(
        format!("holds {count} values, more than the memory of this computer can take"),
        "save fewer rows, or work on a larger computer",
    )
}
