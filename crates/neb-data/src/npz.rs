//! npz: a zip archive with one npy entry per array.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::atomic::Output;
use crate::error::Problem;
use crate::flaws::Flaws;
use crate::npy::{Header, NdArray, read_array, read_text, shape_text, write_names, write_npy};
use crate::select::Selection;
use crate::write::Array;
use crate::{Error, Result, expansion};

/// Deflate cannot shrink data by more than this factor, and a little for its blocks.
const DEFLATE_LIMIT: u64 = 1032;

/// Entries of 4 GiB and more need the zip64 extension.
const ZIP64_FROM: u64 = 0xffff_ffff;

/// One array of the archive; a header that could not be read matters only when the array is asked for.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    index: usize,
    header: std::result::Result<Header, Problem>,
}

impl Entry {
    /// `x` (100×3), for lists.
    fn text(&self) -> String {
        match &self.header {
            Ok(header) => format!("`{}` ({})", self.name, shape_text(&header.shape)),
            Err(_) => format!("`{}`", self.name),
        }
    }
}

type Archive = ZipArchive<BufReader<File>>;

fn open(path: &Path) -> Result<Archive> {
    let file = File::open(path).map_err(|refused| Error::reading(path, refused))?;
    ZipArchive::new(BufReader::new(file)).map_err(|failed| {
        Problem::damaged(format!("is not a complete npz (zip) archive: {failed}")).at(path)
    })
}

/// The arrays of an archive, in its order.
pub(crate) fn entries(path: &Path) -> Result<Vec<Entry>> {
    let mut archive = open(path)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let Some(Ok(full_name)) = archive.name_for_index(index) else {
            continue;
        };
        let name = full_name
            .strip_suffix(".npy")
            .unwrap_or(&full_name)
            .to_owned();
        let header = archive
            .by_index(index)
            .map_err(unreadable)
            .and_then(|mut entry| Header::read(&mut entry));
        entries.push(Entry {
            name,
            index,
            header,
        });
    }
    if entries.is_empty() {
        return Err(Error::file(
            path,
            "holds no arrays",
            "write it with np.savez(\"data.npz\", x=x, y=y)",
        ));
    }
    Ok(entries)
}

fn unreadable(failed: zip::result::ZipError) -> Problem {
    Problem::new(
        format!("cannot be unpacked: {failed}"),
        "write the file again with np.savez or np.savez_compressed",
    )
}

/// The array `name`, or an error that lists what there is.
pub(crate) fn find<'a>(
    path: &Path,
    entries: &'a [Entry],
    name: &str,
    selection: &Selection,
) -> Result<&'a Entry> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| {
            let names: Vec<String> = entries.iter().map(|entry| entry.name.clone()).collect();
            let texts: Vec<String> = entries.iter().map(Entry::text).collect();
            Error::file(
                path,
                format!(
                    "there is no array `{name}`; the arrays are {}",
                    texts.join(", ")
                ),
                selection.suggest(name, &names, "arrays"),
            )
        })
}

/// Reads one array, as it is shaped.
pub(crate) fn read(path: &Path, entry: &Entry, flaws: &mut Flaws) -> Result<NdArray> {
    let subject = format!("array `{}`", entry.name);
    let mut archive = open(path)?;
    let length = path
        .metadata()
        .map_err(|refused| Error::reading(path, refused))?
        .len();
    entry
        .header
        .clone()
        .and_then(|_| {
            let mut file = archive.by_index(entry.index).map_err(unreadable)?;
            let (stored, expanded) = (file.compressed_size(), file.size());
            check_sizes(stored, expanded, length)?;
            read_array(&mut BufReader::new(&mut file), expanded, flaws)
        })
        .map_err(|problem| problem.of(path, &subject))
}

/// The sizes that the archive declares must be possible for a file of `length` bytes.
fn check_sizes(stored: u64, expanded: u64, length: u64) -> std::result::Result<(), Problem> {
    if stored > length || expanded > stored.saturating_mul(DEFLATE_LIMIT) {
        return Err(Problem::damaged(format!(
            "declares {expanded} bytes packed into {stored}, which a file of {length} bytes cannot hold"
        )));
    }
    expansion::check(expanded, stored)
}

/// Names for the `cols` columns of an array: from the text array `NAME_columns`, else `columns`, if there is one of that length.
pub(crate) fn column_names(
    path: &Path,
    entries: &[Entry],
    name: &str,
    cols: usize,
) -> Result<Option<Vec<String>>> {
    for candidate in [format!("{name}_columns"), "columns".into()] {
        let Some(entry) = entries.iter().find(|entry| entry.name == candidate) else {
            continue;
        };
        if !matches!(&entry.header, Ok(header) if !header.is_numeric() && header.shape == [cols]) {
            continue;
        }
        let mut archive = open(path)?;
        let names = archive
            .by_index(entry.index)
            .map_err(unreadable)
            .and_then(|mut file| {
                let header = Header::read(&mut file)?;
                let count = header.count(file.size().saturating_sub(header.length))?;
                read_text(&mut file, &header, count)
            })
            .map_err(|problem| problem.of(path, &format!("array `{candidate}`")))?;
        let distinct: HashSet<&String> = names.iter().collect();
        if distinct.len() == cols && !distinct.iter().any(|name| name.is_empty()) {
            return Ok(Some(names));
        }
    }
    Ok(None)
}

/// Writes the arrays without compression (numbers with noise hardly shrink); column names of their own go to a text array
/// `NAME_columns`.
pub(crate) fn write(output: &mut dyn Output, arrays: &[Array<'_>]) -> io::Result<()> {
    let mut archive = ZipWriter::new(FirstFailure::new(output));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for array in arrays {
        let large = array.values().bytes() >= ZIP64_FROM / 2;
        archive.start_file(format!("{}.npy", array.name()), options.large_file(large))?;
        write_npy(&mut archive, array.shape(), array.values())?;
        if let Some(names) = array.own_names() {
            archive.start_file(format!("{}_columns.npy", array.name()), options)?;
            write_names(&mut archive, names)?;
        }
    }
    archive.finish()?;
    Ok(())
}

/// Passes the first failure on; from then on everything succeeds and goes nowhere. A dropped `ZipWriter` tries to
/// complete the archive once more, and would print that it cannot.
struct FirstFailure<'a> {
    output: &'a mut dyn Output,
    failed: bool,
    position: u64,
    end: u64,
}

impl<'a> FirstFailure<'a> {
    fn new(output: &'a mut dyn Output) -> Self {
        Self {
            output,
            failed: false,
            position: 0,
            end: 0,
        }
    }

    /// What `act` gives, or `ignored` after a failure.
    fn attempt<T>(
        &mut self,
        ignored: T,
        act: impl FnOnce(&mut dyn Output) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed {
            return Ok(ignored);
        }
        let result = act(self.output);
        self.failed = matches!(&result, Err(error) if error.kind() != io::ErrorKind::Interrupted);
        result
    }
}

impl Write for FirstFailure<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.attempt(bytes.len(), |output| output.write(bytes))?;
        self.position += written as u64;
        self.end = self.end.max(self.position);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), |output| output.flush())
    }
}

impl Seek for FirstFailure<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let imagined = match to {
            SeekFrom::Start(position) => position,
            SeekFrom::Current(change) => self.position.saturating_add_signed(change),
            SeekFrom::End(change) => self.end.saturating_add_signed(change),
        };
        self.position = self.attempt(imagined, |output| output.seek(to))?;
        Ok(self.position)
    }
}
