//! Columns of text: one line per row, with or without a header.
//!
//! The first line decides: it is a header unless every field is a number. The separator (comma, semicolon, tab or
//! space) is the one found there. Lines that begin with `#` are comments; the last one before the numbers is taken as header if
//! it fits, as `np.savetxt(..., header="x1,x2")` writes it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use crate::error::Problem;
use crate::flaws::{Flaws, Found};
use crate::select::{Selection, numbered_names};
use crate::table::Table;
use crate::write::{Array, Values};
use crate::{Error, Result};

/// A first line longer than this is not one of a table.
const LONGEST_LINE: u64 = 1 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How the file is laid out.
#[derive(Debug)]
pub(crate) struct Layout {
    delimiter: u8,
    cols: usize,
    header: Header,
}

#[derive(Debug)]
enum Header {
    Absent,
    /// The first line that is no comment.
    Line(Vec<String>),
    /// The last comment before the numbers.
    Comment(Vec<String>),
}

impl Layout {
    /// The names of the columns; none without a header.
    pub(crate) fn header(&self) -> &[String] {
        match &self.header {
            Header::Absent => &[],
            Header::Line(names) | Header::Comment(names) => names,
        }
    }
}

/// Finds separator and header.
pub(crate) fn layout(path: &Path) -> Result<Layout> {
    let file = File::open(path).map_err(|refused| Error::reading(path, refused))?;
    let mut reader = BufReader::new(file);
    let mut comment = None;
    let mut first_of_all = true;
    loop {
        let mut line = Vec::new();
        reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|refused| Error::reading(path, refused))?;
        if line.is_empty() {
            return Err(Error::file(
                path,
                "holds no rows",
                "write one line of numbers per row, after an optional header line of names",
            ));
        }
        if line.len() as u64 == LONGEST_LINE {
            return Err(Error::file(
                path,
                format!("has a line of more than {LONGEST_LINE} bytes; expected a table of text"),
                "write one line per row",
            ));
        }
        if std::mem::take(&mut first_of_all) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        match line.trim_ascii_end() {
            [] => {}
            [b'#', text @ ..] => comment = Some(text.to_vec()),
            text => return Ok(layout_from(text, comment.as_deref())),
        }
    }
}

fn layout_from(first: &[u8], comment: Option<&[u8]>) -> Layout {
    let delimiter = delimiter_of(first);
    let fields = split(first, delimiter);
    let cols = fields.len();
    let is_number = |field: &String| field.is_empty() || field.parse::<f64>().is_ok();
    let header = if fields.iter().all(is_number) {
        let names = comment
            .map(|text| split(text, delimiter))
            .unwrap_or_default();
        if names.len() == cols && !names.iter().any(is_number) {
            Header::Comment(names)
        } else {
            Header::Absent
        }
    } else {
        Header::Line(fields)
    };
    Layout {
        delimiter,
        cols,
        header,
    }
}

/// Semicolon and tab before comma (which may be a decimal comma), space last.
fn delimiter_of(line: &[u8]) -> u8 {
    let mut quoted = false;
    let outside: Vec<u8> = line
        .iter()
        .copied()
        .filter(|&byte| {
            quoted ^= byte == b'"';
            !quoted
        })
        .collect();
    let candidates = [b';', b'\t', b',', b' '];
    let found = candidates.into_iter().find(|byte| outside.contains(byte));
    found.unwrap_or(b',')
}

fn split(line: &[u8], delimiter: u8) -> Vec<String> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(line.trim_ascii());
    let mut record = ByteRecord::new();
    match reader.read_byte_record(&mut record) {
        Ok(true) => record
            .iter()
            .map(|field| String::from_utf8_lossy(field.trim_ascii()).into_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// One group while it is read.
struct Group {
    subject: String,
    names: Vec<String>,
    positions: Vec<usize>,
    values: Vec<f32>,
    flaws: Flaws,
}

/// Reads all groups in one pass.
pub(crate) fn read(path: &Path, layout: &Layout, selections: &[&Selection]) -> Result<Vec<Table>> {
    let mut groups = selections
        .iter()
        .map(|selection| resolve(layout, selection, selections.len()))
        .collect::<std::result::Result<Vec<Group>, Problem>>()
        .map_err(|problem| problem.at(path))?;

    let file = File::open(path).map_err(|refused| Error::reading(path, refused))?;
    let mut reader = ReaderBuilder::new()
        .has_headers(matches!(layout.header, Header::Line(_)))
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(layout.delimiter)
        .buffer_capacity(1 << 16)
        .from_reader(file);
    let mut record = ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .map_err(|failed| Error::reading(path, system_error(failed)))?
    {
        let start = record.position().map_or(0, |position| position.byte());
        take_row(&record, start, layout, &mut groups)
            .map_err(|problem| problem(line_from(path, start)).at(path))?;
    }

    let mut tables = Vec::new();
    for mut group in groups {
        if group.values.is_empty() {
            return Err(Error::file(
                path,
                "holds a header line and no rows",
                "write one line of numbers per row",
            ));
        }
        let place = |start| format!("line {}", line_from(path, start as u64));
        group
            .flaws
            .check(path, &group.subject, &group.names, place)?;
        group.values.shrink_to_fit();
        tables.push(Table::new(path, group.subject, group.names, group.values));
    }
    Ok(tables)
}

fn resolve(
    layout: &Layout,
    selection: &Selection,
    groups: usize,
) -> std::result::Result<Group, Problem> {
    let role = selection.role();
    let (positions, names) = if !matches!(layout.header, Header::Absent) {
        let positions = selection.resolve(layout.header())?;
        let names = positions.iter().map(|&at| layout.header()[at].clone());
        let names = names.collect();
        (positions, names)
    } else {
        let positions = if !selection.is_usual() {
            let numbers: Vec<String> = (1..=layout.cols).map(|at| at.to_string()).collect();
            selection.resolve(&numbers)?
        } else if groups == 1 {
            (0..layout.cols).collect()
        } else {
            return Err(Problem::new(
                format!(
                    "has no header line, so nothing says which of its {} columns are `{role}`",
                    layout.cols
                ),
                format!(
                    "add a first line of names, such as `x1,x2,y1`, or give the numbers of the columns: --{role} 1,2"
                ),
            ));
        };
        let names = numbered_names(role, positions.len());
        (positions, names)
    };
    Ok(Group {
        subject: format!("group `{role}`"),
        names,
        positions,
        values: Vec::new(),
        flaws: Flaws::default(),
    })
}

/// A problem for which the line has yet to be found.
type ProblemAt = Box<dyn FnOnce(u64) -> Problem>;

/// Appends one row to every group; `start` is the byte where the reader began to look for it.
fn take_row(
    record: &ByteRecord,
    start: u64,
    layout: &Layout,
    groups: &mut [Group],
) -> std::result::Result<(), ProblemAt> {
    let (found, expected) = (record.len(), layout.cols);
    if found != expected {
        return Err(Box::new(move |line| {
            Problem::new(
                format!("line {line} has {found} fields; the first line has {expected}"),
                "give every line the same number of fields, with one separator throughout",
            )
        }));
    }
    for group in groups {
        for (col, &at) in group.positions.iter().enumerate() {
            let text = std::str::from_utf8(&record[at]).unwrap_or("?").trim_ascii();
            let Ok(value) = text.parse::<f32>() else {
                let field = String::from_utf8_lossy(record[at].trim_ascii()).into_owned();
                let name = group.names[col].clone();
                return Err(Box::new(move |line| not_a_number(&field, line, &name)));
            };
            if !value.is_finite() {
                let found = text.parse().unwrap_or(f64::NAN);
                group.flaws.add(start as usize, col, Found::Number(found));
            }
            group.values.push(value);
        }
    }
    Ok(())
}

/// The number of the first line with data from byte `start` on. The reader's own count lags behind after empty lines,
/// comments and Windows line ends, so it is counted afresh where a message needs it.
fn line_from(path: &Path, start: u64) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let (mut offset, mut number) = (0, 0);
    for line in BufReader::new(file).split(b'\n') {
        let Ok(line) = line else { break };
        number += 1;
        offset += line.len() as u64 + 1;
        let skipped = matches!(line[..], [] | [b'\r'] | [b'#', ..]);
        // A reader that stopped between the two bytes of a Windows line end has done with that line.
        if offset > start + 1 && !skipped {
            break;
        }
    }
    number
}

fn not_a_number(field: &str, line: u64, name: &str) -> Problem {
    if field.is_empty() {
        return Problem::new(
            format!("line {line}, column `{name}`: the field is empty; expected a number"),
            "remove or repair this line; neb never drops data by itself",
        );
    }
    let shown: String = field.chars().take(40).collect();
    let decimal_comma = field.replacen(',', ".", 1).parse::<f64>().is_ok();
    Problem::new(
        format!("line {line}, column `{name}`: `{shown}` is not a number"),
        if decimal_comma {
            "write decimal points instead of decimal commas"
        } else {
            "remove or repair this line, or select other columns"
        },
    )
}

/// Writes a header and one line per row, each number with the digits that bring it back exactly.
pub(crate) fn write(
    output: &mut (impl io::Write + ?Sized),
    arrays: &[Array<'_>],
) -> io::Result<()> {
    write_lines(output, arrays).map_err(system_error)
}

fn write_lines(output: &mut (impl io::Write + ?Sized), arrays: &[Array<'_>]) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(arrays.iter().flat_map(Array::names))?;
    let rows = arrays.first().map_or(0, Array::rows);
    for row in 0..rows {
        for array in arrays {
            let cols = array.cols();
            for at in row * cols..(row + 1) * cols {
                let text = match array.values() {
                    Values::F32(values) => format!("{:?}", values[at]),
                    Values::F64(values) => format!("{:?}", values[at]),
                    Values::I64(values) => values[at].to_string(),
                };
                writer.write_field(text)?;
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(writer.flush()?)
}

/// The system's own error, where that is what failed.
fn system_error(failed: csv::Error) -> io::Error {
    match failed.into_kind() {
        csv::ErrorKind::Io(system) => system,
        other => io::Error::other(format!("{other:?}")),
    }
}
