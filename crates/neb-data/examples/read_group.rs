//! Reads one group and says what it took: `read_group FILE [ROLE [NAMES]]`, or writes a table to try it on:
//! `read_group --make FILE ROWS COLUMNS`.

use std::time::Instant;

use neb_data::{Array, Dataset, Selection, write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    match &arguments[..] {
        [make, path, rows, cols] if make == "--make" => {
            let shape = [rows.parse::<usize>()?, cols.parse::<usize>()?];
            let count = shape[0] * shape[1];
            let values: Vec<f32> = (0..count).map(|index| (index as f32).sin()).collect();
            write(path, true, &[Array::new("x", &shape, &values[..])])?;
            println!("wrote {path} in {:.2} s", start.elapsed().as_secs_f64());
        }
        [path, rest @ ..] => {
            let role = rest.first().map_or("x", String::as_str);
            let names = rest.get(1).map_or("", String::as_str);
            match Dataset::open(path).and_then(|data| data.group(&Selection::named(role, names))) {
                Ok(table) => println!(
                    "{} rows of {:?} in {:.2} s",
                    table.rows(),
                    table.names(),
                    start.elapsed().as_secs_f64()
                ),
                Err(error) => {
                    eprintln!("error: {error}");
                    eprintln!("hint: {}", error.hint().unwrap_or("none"));
                }
            }
        }
        [] => println!("usage: read_group FILE [ROLE [NAMES]]"),
    }
    // Linux counts the largest resident size of the process itself.
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("{}", peak.unwrap_or("peak unknown"));
    }
    Ok(())
}
