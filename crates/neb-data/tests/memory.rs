//! 1.6 million rows of 12 columns are read in less than 400 MB, table included, whatever the file.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use neb_data::{Dataset, Selection};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ROWS: usize = 1_600_000;
const COLS: usize = 12;

/// Peak resident size of this process so far, in MB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1000
}

/// An npy array of f8 in Fortran order, the most demanding one, row numbers in every column.
fn write_npy(writer: &mut impl Write) {
    let dict = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({ROWS}, {COLS}), }}\n");
    writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
    writer
        .write_all(&(dict.len() as u16).to_le_bytes())
        .unwrap();
    writer.write_all(dict.as_bytes()).unwrap();
    let mut writer = BufWriter::new(writer);
    for _ in 0..COLS {
        for row in 0..ROWS {
            writer.write_all(&(row as f64).to_le_bytes()).unwrap();
        }
    }
    writer.flush().unwrap();
}

fn check(path: &Path) {
    let table = Dataset::open(path)
        .and_then(|data| data.group(&Selection::new("x")))
        .unwrap();
    assert_eq!((table.rows(), table.cols()), (ROWS, COLS));
    assert_eq!(table.values()[(ROWS - 1) * COLS], (ROWS - 1) as f32);
    drop(table);
    let peak = peak();
    assert!(peak < 400, "{}: peak of {peak} MB", path.display());
}

#[test]
fn large_files_take_little_more_than_their_table() {
    let folder = tempfile::tempdir().unwrap();

    let path = folder.path().join("large.npz");
    let mut archive = ZipWriter::new(File::create(&path).unwrap());
    let options = SimpleFileOptions::default().compression_level(Some(1));
    archive.start_file("x.npy", options).unwrap();
    write_npy(&mut archive);
    archive.finish().unwrap();
    check(&path);

    let path = folder.path().join("large.csv");
    let mut writer = BufWriter::new(File::create(&path).unwrap());
    for row in 0..ROWS {
        let line = format!("{row},").repeat(COLS);
        writeln!(writer, "{}", line.trim_end_matches(',')).unwrap();
    }
    drop(writer);
    check(&path);
}
