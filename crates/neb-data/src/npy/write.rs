//! Arrays to npy: format version 1, little-endian, C order.

use std::io::{self, Write};

use super::MAGIC;
use crate::write::Values;

/// numpy aligns the first element to this many bytes.
const ALIGNMENT: usize = 64;

/// Values encoded at a time.
const PIECE: usize = 1 << 13;

/// Writes one array.
pub(crate) fn write_npy(
    writer: &mut (impl Write + ?Sized),
    shape: &[usize],
    values: Values<'_>,
) -> io::Result<()> {
    match values {
        Values::F32(values) => {
            write_header(writer, "<f4", shape)?;
            write_numbers(writer, values, f32::to_le_bytes)
        }
        Values::F64(values) => {
            write_header(writer, "<f8", shape)?;
            write_numbers(writer, values, f64::to_le_bytes)
        }
        Values::I64(values) => {
            write_header(writer, "<i8", shape)?;
            write_numbers(writer, values, i64::to_le_bytes)
        }
    }
}

/// Writes a list of names as an array of fixed-width unicode.
pub(crate) fn write_names(writer: &mut (impl Write + ?Sized), names: &[String]) -> io::Result<()> {
    let lengths = names.iter().map(|name| name.chars().count());
    let width = lengths.max().unwrap_or(0).max(1);
    write_header(writer, &format!("<U{width}"), &[names.len()])?;
    for name in names {
        let padding = std::iter::repeat(0);
        let codes = name.chars().map(u32::from).chain(padding).take(width);
        let bytes: Vec<u8> = codes.flat_map(u32::to_le_bytes).collect();
        writer.write_all(&bytes)?;
    }
    Ok(())
}

fn write_header(
    writer: &mut (impl Write + ?Sized),
    descr: &str,
    shape: &[usize],
) -> io::Result<()> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    // A tuple of one keeps its comma, longer ones need none at the end.
    let sizes = match shape.len() {
        1 => sizes.trim_end(),
        _ => sizes.trim_end_matches(", "),
    };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
    let prefix = MAGIC.len() + 4;
    let unpadded = prefix + dict.len() + 1;
    dict.extend(std::iter::repeat_n(
        ' ',
        unpadded.next_multiple_of(ALIGNMENT) - unpadded,
    ));
    dict.push('\n');
    let length = u16::try_from(dict.len()).map_err(io::Error::other)?;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(dict.as_bytes())
}

fn write_numbers<T: Copy, const N: usize>(
    writer: &mut (impl Write + ?Sized),
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(PIECE.min(values.len()) * N);
    for piece in values.chunks(PIECE) {
        bytes.clear();
        bytes.extend(piece.iter().flat_map(|&value| to_bytes(value)));
        writer.write_all(&bytes)?;
    }
    Ok(())
}
