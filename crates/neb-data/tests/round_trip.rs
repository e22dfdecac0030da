//! What is written comes back, in every format.

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;

use neb_data::{Array, Dataset, Format, Selection, write, write_to};

#[cfg(feature = "parquet")]
const COLUMN_FORMATS: [&str; 3] = ["npz", "csv", "parquet"];
#[cfg(not(feature = "parquet"))]
const COLUMN_FORMATS: [&str; 2] = ["npz", "csv"];

/// Numbers that rounding or a short notation would change.
const AWKWARD: [f32; 8] = [
    0.1,
    -0.0,
    1.0 / 3.0,
    f32::MAX,
    f32::MIN_POSITIVE,
    1e-45,
    16_777_217.0,
    -3.402_823e38,
];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn groups_come_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let y64: Vec<f64> = AWKWARD.iter().map(|&value| value.into()).collect();
    let weight: Vec<i64> = (0..4).map(|row| 10_i64.pow(row)).collect();
    for extension in COLUMN_FORMATS {
        let path = folder.path().join("pairs").with_extension(extension);
        let arrays = [
            Array::new("x", &[4, 2], &AWKWARD[..]),
            Array::new("y", &[4, 2], &y64[..]),
            Array::new("weight", &[4], &weight[..]),
        ];
        write(&path, false, &arrays).unwrap();
        let data = Dataset::open(&path).unwrap();
        let wanted = ["x", "y", "weight"].map(Selection::new);
        let [x, y, weight] = data.groups([&wanted[0], &wanted[1], &wanted[2]]).unwrap();
        assert_eq!(bits(x.values()), bits(&AWKWARD), "{extension}");
        assert_eq!(bits(y.values()), bits(&AWKWARD), "{extension}");
        assert_eq!(weight.values(), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(x.names(), ["x1", "x2"]);
        assert_eq!(weight.names(), ["weight"]);
    }
}

#[test]
fn column_names_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (names(&["pt [GeV]", "η"]), names(&["a", "b"]));
    for extension in COLUMN_FORMATS {
        let path = folder.path().join("named").with_extension(extension);
        let arrays = [
            Array::new("x", &[4, 2], &AWKWARD[..]).with_names(&own),
            Array::new("y", &[4, 2], &AWKWARD[..]).with_names(&other),
        ];
        write(&path, false, &arrays).unwrap();
        let data = Dataset::open(&path).unwrap();
        let selection = match extension {
            "npz" => Selection::new("x"),
            _ => Selection::named("x", "pt [GeV],η"),
        };
        let x = data.group(&selection).unwrap();
        assert_eq!(x.names(), own, "{extension}");

        let copy = folder.path().join("copy").with_extension(extension);
        write(&copy, false, &[Array::of_table("x", &x)]).unwrap();
        let again = Dataset::open(&copy).unwrap().group(&selection).unwrap();
        assert_eq!((again.names(), again.values()), (x.names(), x.values()));
    }
}

#[test]
fn posteriors_of_three_dimensions_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let draws: Vec<f32> = (0..60).map(|index| index as f32 / 7.0).collect();
    for extension in ["npz", "npy"] {
        let path = folder.path().join("draws").with_extension(extension);
        let posterior = Array::new("posterior", &[3, 10, 2], &draws[..]);
        write(&path, false, &[posterior]).unwrap();
        let read = Dataset::open(&path).unwrap().array("posterior").unwrap();
        assert_eq!((read.shape, read.values), (vec![3, 10, 2], draws.clone()));
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_before_writing() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |file: &str, arrays: &[Array<'_>], message: &str, hint: &str| {
        let path = folder.path().join(file);
        let error = write(&path, true, arrays).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: {message}", path.display()));
        assert_eq!(error.hint(), Some(hint));
        assert!(!path.exists());
    };
    let cube = || Array::new("x", &[2, 2, 2], &AWKWARD[..]);
    let short = || Array::new("y", &[2], &AWKWARD[..2]);
    let long = || Array::new("x", &[4, 2], &AWKWARD[..]);
    let instead = "write an .npz file instead";
    let message = "array `x` has 3 dimensions (2×2×2); columns have one or two";
    refuse("a.csv", &[cube()], message, instead);
    let message = "an npy file holds one array; there are 2 to write";
    refuse("a.npy", &[cube(), short()], message, instead);
    let message = "array `x` has 4 rows but array `y` has 2";
    refuse("a.csv", &[long(), short()], message, instead);
    let message = "there are two arrays named `x`";
    refuse(
        "a.npz",
        &[long(), cube()],
        message,
        "give each a name of its own",
    );
    let message = "has the extension `.dat`; expected .npz, .npy, .csv or .parquet";
    let hint = "convert it, for example with np.savez(\"data.npz\", x=x, y=y), or correct its name";
    refuse("a.dat", &[long()], message, hint);
}

#[test]
fn an_existing_file_stays_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let array = || [Array::new("x", &[8], &AWKWARD[..])];
    write(&path, false, &array()).unwrap();
    let error = write(&path, false, &array()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("exists already and was not touched")
    );
    write(&path, true, &array()).unwrap();
}

/// A disk that is full after so many bytes.
struct SmallDisk {
    content: Cursor<Vec<u8>>,
    capacity: usize,
}

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.content.position() as usize + bytes.len() > self.capacity {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SmallDisk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.content.seek(to)
    }
}

#[test]
fn a_full_disk_is_reported_wherever_it_strikes() {
    let values: Vec<f32> = (0..2000).map(|index| (index as f32).sin()).collect();
    let arrays = [Array::new("x", &[1000, 2], &values[..])];
    let formats = [
        Format::Npz,
        Format::Npy,
        Format::Csv,
        #[cfg(feature = "parquet")]
        Format::Parquet,
    ];
    for format in formats {
        let disk = |capacity| SmallDisk {
            content: Cursor::new(Vec::new()),
            capacity,
        };
        let mut large = disk(usize::MAX);
        write_to(&mut large, format, &arrays).unwrap();
        let size = large.content.get_ref().len();
        for capacity in [0, 5, 100, size / 2, size - 1] {
            let error = write_to(&mut disk(capacity), format, &arrays).unwrap_err();
            let kind = error.kind();
            assert_eq!(kind, io::ErrorKind::StorageFull, "{format:?} {capacity}");
        }
        write_to(&mut disk(size), format, &arrays).unwrap();
    }
}

#[test]
fn outputs_are_the_same_bytes_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |name: &str| {
        let path = folder.path().join(name);
        write(&path, false, &[Array::new("x", &[4, 2], &AWKWARD[..])]).unwrap();
        std::fs::read(Path::new(&path)).unwrap()
    };
    for extension in COLUMN_FORMATS {
        let (first, second) = (format!("1.{extension}"), format!("2.{extension}"));
        assert_eq!(bytes(&first), bytes(&second), "{extension}");
    }
}
