//! Columns of a parquet file, read a block of rows at a time so that memory is taken only for what has arrived.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, Type};

use crate::atomic::Output;
use crate::error::Problem;
use crate::flaws::{Flaws, Found};
use crate::select::Selection;
use crate::table::Table;
use crate::write::{Array, Values};
use crate::{Error, Result, expansion};

/// Rows decoded at a time.
const BLOCK: usize = 4096;

/// Rows of a row group when writing.
const ROW_GROUP: usize = 1 << 20;

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = File::open(path).map_err(|refused| Error::reading(path, refused))?;
    SerializedFileReader::new(file).map_err(|failed| {
        Problem::damaged(format!("is not a complete parquet table: {failed}")).at(path)
    })
}

/// The names of the columns.
pub(crate) fn columns(path: &Path) -> Result<Vec<String>> {
    guarded(path, || {
        let reader = open(path)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.path().string());
        Ok(names.collect())
    })
}

/// The parquet decoder panics on some damaged files; a user is owed an error.
fn guarded<T>(path: &Path, act: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        Err(Problem::damaged("holds pages that contradict each other").at(path))
    })
}

/// One group while it is read.
struct Group {
    subject: String,
    names: Vec<String>,
    positions: Vec<usize>,
    values: Vec<f32>,
    flaws: Flaws,
}

/// Reads all groups.
pub(crate) fn read(
    path: &Path,
    columns: &[String],
    selections: &[&Selection],
) -> Result<Vec<Table>> {
    guarded(path, || read_groups(path, columns, selections))
}

fn read_groups(path: &Path, columns: &[String], selections: &[&Selection]) -> Result<Vec<Table>> {
    let reader = open(path)?;
    let length = path
        .metadata()
        .map_err(|refused| Error::reading(path, refused))?
        .len();
    let mut tables = Vec::new();
    for selection in selections {
        let positions = selection
            .resolve(columns)
            .map_err(|problem| problem.at(path))?;
        let mut group = Group {
            subject: format!("group `{}`", selection.role()),
            names: positions.iter().map(|&at| columns[at].clone()).collect(),
            positions,
            values: Vec::new(),
            flaws: Flaws::default(),
        };
        check_columns(&reader, &group, length).map_err(|problem| problem.at(path))?;
        for index in 0..reader.num_row_groups() {
            reader
                .get_row_group(index)
                .map_err(damaged)
                .and_then(|rows| take_row_group(rows.as_ref(), &mut group))
                .map_err(|problem| problem.at(path))?;
        }
        if group.values.is_empty() {
            return Err(Error::file(path, "holds no rows", "write at least one row"));
        }
        let place = |row| format!("row {row}");
        group
            .flaws
            .check(path, &group.subject, &group.names, place)?;
        group.values.shrink_to_fit();
        tables.push(Table::new(path, group.subject, group.names, group.values));
    }
    Ok(tables)
}

fn damaged(failed: ParquetError) -> Problem {
    Problem::damaged(format!("cannot be decoded: {failed}"))
}

/// Whether the columns of a group are numbers that this build can unpack, and of a believable size.
fn check_columns(
    reader: &SerializedFileReader<File>,
    group: &Group,
    length: u64,
) -> std::result::Result<(), Problem> {
    let metadata = reader.metadata();
    for &at in &group.positions {
        let column = metadata.file_metadata().schema_descr().column(at);
        if let Some(found) = not_numeric(&column) {
            return Err(Problem::new(
                format!(
                    "column `{}` holds {found}; expected numbers",
                    column.path().string()
                ),
                "convert it to float or integer before saving, or select other columns",
            ));
        }
        for row_group in metadata.row_groups() {
            let packed = row_group.column(at).compression();
            if !matches!(
                packed,
                Compression::UNCOMPRESSED
                    | Compression::SNAPPY
                    | Compression::GZIP(_)
                    | Compression::LZ4
                    | Compression::LZ4_RAW
            ) {
                let codec = packed.to_string();
                let codec = codec.split('(').next().unwrap_or_default().to_lowercase();
                return Err(Problem::new(
                    format!(
                        "column `{}` is compressed with {codec}; expected snappy, gzip, lz4 or none",
                        column.path().string()
                    ),
                    "save it again: df.to_parquet(file, compression=\"snappy\")",
                ));
            }
        }
    }
    let rows = u64::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
    let bytes = rows.saturating_mul(4 * group.positions.len() as u64);
    expansion::check(bytes, length).map_err(|problem| Problem {
        message: format!("{} {}", group.subject, problem.message),
        ..problem
    })
}

/// What a column holds, unless it holds plain numbers.
fn not_numeric(column: &ColumnDescriptor) -> Option<&'static str> {
    if column.max_rep_level() > 0 {
        return Some("lists");
    }
    let number = match column.logical_type_ref() {
        Some(LogicalType::Integer(_)) => true,
        Some(LogicalType::Decimal(_)) => return Some("decimals"),
        Some(_) => return Some("dates, times or text"),
        None => matches!(
            column.converted_type(),
            ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64
                | ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
    };
    let plain = matches!(
        column.physical_type(),
        Physical::BOOLEAN | Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE
    );
    (!number || !plain).then_some("dates, times, decimals or text")
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(integer)) if !integer.is_signed
    ) || matches!(
        column.converted_type(),
        ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
    )
}

/// Appends the rows of one row group.
fn take_row_group(
    rows: &dyn RowGroupReader,
    group: &mut Group,
) -> std::result::Result<(), Problem> {
    let cols = group.positions.len();
    let mut readers = Vec::with_capacity(cols);
    for &at in &group.positions {
        let unsigned = is_unsigned(&rows.metadata().column(at).column_descr_ptr());
        readers.push((rows.get_column_reader(at).map_err(damaged)?, unsigned));
    }
    let mut remaining = usize::try_from(rows.metadata().num_rows()).unwrap_or(0);
    let mut column = Vec::with_capacity(BLOCK);
    while remaining > 0 {
        let wanted = remaining.min(BLOCK);
        let start = group.values.len();
        group.values.resize(start + wanted * cols, 0.0);
        for (col, (reader, unsigned)) in readers.iter_mut().enumerate() {
            next_block(reader, *unsigned, wanted, &mut column).map_err(damaged)?;
            if column.len() != wanted {
                return Err(Problem::damaged(format!(
                    "column `{}` has fewer rows than the table declares",
                    group.names[col]
                )));
            }
            let block = group.values[start..].chunks_exact_mut(cols);
            for (offset, (row, &found)) in block.zip(&column).enumerate() {
                row[col] = match found {
                    Found::Number(value) => value as f32,
                    Found::Null => f32::NAN,
                };
                if !row[col].is_finite() {
                    group.flaws.add(start / cols + offset, col, found);
                }
            }
        }
        remaining -= wanted;
    }
    Ok(())
}

/// Reads the next `wanted` rows of one column.
fn next_block(
    reader: &mut ColumnReader,
    unsigned: bool,
    wanted: usize,
    column: &mut Vec<Found>,
) -> std::result::Result<(), ParquetError> {
    use ColumnReader::*;
    match reader {
        BoolColumnReader(reader) => pull(reader, wanted, column, |v| f64::from(u8::from(v))),
        Int32ColumnReader(reader) if unsigned => {
            pull(reader, wanted, column, |v| f64::from(v as u32))
        }
        Int32ColumnReader(reader) => pull(reader, wanted, column, f64::from),
        Int64ColumnReader(reader) if unsigned => pull(reader, wanted, column, |v| v as u64 as f64),
        Int64ColumnReader(reader) => pull(reader, wanted, column, |v| v as f64),
        FloatColumnReader(reader) => pull(reader, wanted, column, f64::from),
        DoubleColumnReader(reader) => pull(reader, wanted, column, |v| v),
        _ => Err(ParquetError::General("a column without numbers".into())),
    }
}

fn pull<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    wanted: usize,
    column: &mut Vec<Found>,
    convert: impl Fn(T::T) -> f64,
) -> std::result::Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::with_capacity(wanted), Vec::new());
    column.clear();
    let (rows, present, _) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
    let mut numbers = values
        .into_iter()
        .map(|value| Found::Number(convert(value)));
    if present == rows {
        column.extend(numbers);
    } else {
        // A value is there where its level is the highest of the column.
        let highest = levels.iter().copied().max().unwrap_or(0);
        let there = |level: i16| present > 0 && level == highest;
        let found = levels.iter().map(|&level| {
            let number = there(level).then(|| numbers.next());
            number.flatten().unwrap_or(Found::Null)
        });
        column.extend(found);
    }
    Ok(())
}

/// Writes the columns of all arrays, compressed with snappy.
pub(crate) fn write(output: &mut dyn Output, arrays: &[Array<'_>]) -> io::Result<()> {
    write_columns(output, arrays).map_err(|failed| match failed {
        // The system's reason, where that is what failed.
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(system) => *system,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_columns(
    output: &mut dyn Output,
    arrays: &[Array<'_>],
) -> std::result::Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .build();
    let mut writer = SerializedFileWriter::new(output, schema(arrays)?, Arc::new(properties))?;
    let rows = arrays.first().map_or(0, Array::rows);
    for start in (0..rows).step_by(ROW_GROUP) {
        let range = start..rows.min(start + ROW_GROUP);
        let mut row_group = writer.next_row_group()?;
        for array in arrays {
            for col in 0..array.cols() {
                let cells = range.clone().map(|row| row * array.cols() + col);
                let mut column = row_group
                    .next_column()?
                    .ok_or_else(|| ParquetError::General("too few columns".into()))?;
                match array.values() {
                    Values::F32(values) => {
                        let block: Vec<f32> = cells.map(|at| values[at]).collect();
                        column
                            .typed::<FloatType>()
                            .write_batch(&block, None, None)?;
                    }
                    Values::F64(values) => {
                        let block: Vec<f64> = cells.map(|at| values[at]).collect();
                        column
                            .typed::<DoubleType>()
                            .write_batch(&block, None, None)?;
                    }
                    Values::I64(values) => {
                        let block: Vec<i64> = cells.map(|at| values[at]).collect();
                        column
                            .typed::<Int64Type>()
                            .write_batch(&block, None, None)?;
                    }
                }
                column.close()?;
            }
        }
        row_group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema(arrays: &[Array<'_>]) -> std::result::Result<Arc<Type>, ParquetError> {
    let mut fields = Vec::new();
    for array in arrays {
        let physical = match array.values() {
            Values::F32(_) => Physical::FLOAT,
            Values::F64(_) => Physical::DOUBLE,
            Values::I64(_) => Physical::INT64,
        };
        for name in array.names() {
            let field = Type::primitive_type_builder(&name, physical)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            fields.push(Arc::new(field));
        }
    }
    let schema = Type::group_type_builder("table")
        .with_fields(fields)
        .build()?;
    Ok(Arc::new(schema))
}
