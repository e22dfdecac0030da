//! Every bad input ends in a message that names the file and what was found, and in a hint that helps.

use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use neb_data::{Array, Dataset, Selection, write};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// A folder of bad files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn with(&self, file: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(file), content).unwrap();
        self
    }

    /// What reading `selection` from `file` says, without the folder's name.
    fn says(&self, file: &str, selections: &[Selection]) -> (String, String) {
        let read = Dataset::open(self.path(file)).and_then(|data| match selections {
            [one] => data.group(one).map(|_| ()),
            [one, two] => data.groups([one, two]).map(|_| ()),
            _ => panic!("one or two groups"),
        });
        let error = read.expect_err(file);
        let folder = format!("{}/", self.0.path().display());
        let hint = error.hint().expect("a hint").replace(&folder, "");
        (error.to_string().replace(&folder, ""), hint)
    }

    fn expect(&self, file: &str, selection: Selection, message: &str, hint: &str) {
        let (said, advised) = self.says(file, &[selection]);
        assert_eq!(said, message);
        assert_eq!(advised, hint);
    }
}

const DAMAGED: &str = "the file is damaged; copy, download or write it again";
const REPAIR: &str = "remove or repair these rows; neb never drops data by itself";

fn x() -> Selection {
    Selection::new("x")
}

fn y() -> Selection {
    Selection::new("y")
}

fn data(file: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read(folder.join(file)).unwrap()
}

fn npy(descr: &str, shape: &str, payload: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(payload);
    bytes
}

fn zip(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, content) in entries {
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn files_that_are_not_there_or_not_files() {
    let folder = Folder::new();
    fs::create_dir(folder.path("folder.npz")).unwrap();
    folder
        .with("empty.npz", "")
        .with("data.h5", "x")
        .with("data", "x");
    let convert =
        "convert it, for example with np.savez(\"data.npz\", x=x, y=y), or correct its name";
    folder.expect(
        "absent.npz",
        x(),
        "absent.npz: cannot be read: no such file or folder",
        "check the name and the current folder",
    );
    folder.expect(
        "folder.npz",
        x(),
        "folder.npz: is a folder; expected a file",
        "name a file in it: .npz, .npy, .csv or .parquet",
    );
    folder.expect(
        "empty.npz",
        x(),
        "empty.npz: is empty (0 bytes); expected an npz (zip) archive",
        "write the file again",
    );
    folder.expect(
        "data.h5",
        x(),
        "data.h5: has the extension `.h5`; expected .npz, .npy, .csv or .parquet",
        convert,
    );
    folder.expect(
        "data",
        x(),
        "data: has no extension; expected .npz, .npy, .csv or .parquet",
        convert,
    );
}

#[test]
fn extensions_that_lie() {
    let folder = Folder::new();
    folder
        .with("archive.csv", data("names.npz"))
        .with("array.npz", data("f8_be_F.npy"))
        .with("text.npz", "x1,x2\n1,2\n")
        .with("pickle.npy", b"\x80\x04\x95\x00")
        .with("packed.csv", b"\x1f\x8b\x08\x00")
        .with("binary.csv", b"ab\x00\x01\x02");
    let unpack = "unpack or convert it, for example with np.savez(\"data.npz\", x=x, y=y)";
    folder.expect(
        "archive.csv",
        x(),
        "archive.csv: holds an npz (zip) archive; expected a table of text",
        "rename it to archive.npz",
    );
    folder.expect(
        "array.npz",
        x(),
        "array.npz: holds an npy array; expected an npz (zip) archive",
        "rename it to array.npy",
    );
    folder.expect(
        "text.npz",
        x(),
        "text.npz: is not an npz (zip) archive: its first bytes are of no known kind",
        "check that the file is complete and has the extension of its format",
    );
    folder.expect(
        "pickle.npy",
        x(),
        "pickle.npy: holds a Python pickle; expected an npy array",
        unpack,
    );
    folder.expect(
        "packed.csv",
        x(),
        "packed.csv: holds a gzip file; expected a table of text",
        unpack,
    );
    folder.expect(
        "binary.csv",
        x(),
        "binary.csv: holds binary data; expected a table of text",
        "give the file the extension of its format: .npz, .npy or .parquet",
    );
}

#[test]
fn archives_cut_short_or_changed() {
    let folder = Folder::new();
    let whole = data("names.npz");
    folder.with("half.npz", &whole[..whole.len() / 2]);
    let (said, advised) = folder.says("half.npz", &[x()]);
    assert!(
        said.starts_with("half.npz: is not a complete npz (zip) archive: "),
        "{said}"
    );
    assert_eq!(advised, DAMAGED);

    let values: Vec<u8> = (0..400u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let array = npy("<f4", "(400,)", &values);
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut changed = zip(&[("x.npy", &array)], method);
        changed[500] ^= 0x10;
        folder.with("changed.npz", &changed);
        let (said, advised) = folder.says("changed.npz", &[x()]);
        assert!(said.starts_with("changed.npz: array `x` "), "{said}");
        assert_eq!(advised, DAMAGED);
    }
    folder
        .with("none.npz", zip(&[], CompressionMethod::Stored))
        .expect(
            "none.npz",
            x(),
            "none.npz: holds no arrays",
            "write it with np.savez(\"data.npz\", x=x, y=y)",
        );
    let foreign = zip(
        &[("notes.txt", b"hello, this is text")],
        CompressionMethod::Stored,
    );
    folder.with("foreign.npz", foreign).expect(
        "foreign.npz",
        Selection::named("x", "notes.txt"),
        "foreign.npz: array `notes.txt` is not in npy format: it does not begin with the mark `\\x93NUMPY`",
        "write it with np.save, np.savez or np.savez_compressed",
    );
}

#[test]
fn shapes_that_lie() {
    let folder = Folder::new();
    let long = npy("<f4", "(1000000, 3)", &[0; 12]);
    let huge = npy(
        "<f8",
        "(9223372036854775807, 9223372036854775807)",
        &[0; 12],
    );
    let short = npy("<f4", "(2,)", &[0; 12]);
    let archive = zip(&[("x.npy", &long)], CompressionMethod::Deflated);
    folder
        .with("long.npy", &long)
        .with("long.npz", archive)
        .with("huge.npy", huge)
        .with("short.npy", short)
        .with("header.npy", &long[..20]);
    let message =
        "declares 1000000×3 elements of 4 bytes, which is 12000000 bytes, but 12 bytes follow";
    folder.expect(
        "long.npy",
        x(),
        &format!("long.npy: the array {message}"),
        DAMAGED,
    );
    folder.expect(
        "long.npz",
        x(),
        &format!("long.npz: array `x` {message}"),
        DAMAGED,
    );
    let message = "huge.npy: the array declares 9223372036854775807×9223372036854775807 elements of 8 bytes, \
                   which is more bytes than a computer can hold, but 12 bytes follow";
    folder.expect("huge.npy", x(), message, DAMAGED);
    let message = "short.npy: the array declares 2 elements of 4 bytes, which is 8 bytes, but 12 bytes follow";
    folder.expect("short.npy", x(), message, DAMAGED);
    let message = "header.npy: the array ends within its npy header";
    folder.expect("header.npy", x(), message, DAMAGED);
}

/// Replaces the uncompressed size that the central directory declares for the only entry.
fn declare_size(archive: &mut [u8], size: u32) {
    let central = archive
        .windows(4)
        .rposition(|bytes| bytes == b"PK\x01\x02")
        .unwrap();
    archive[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
}

#[test]
fn archives_that_claim_to_unfold_enormously() {
    let folder = Folder::new();
    let (count, header) = (500_000_000u32, npy("<f4", "(500000000,)", &[]));
    let declared = count * 4 + header.len() as u32;

    let tiny = npy("<f4", "(500000000,)", &[0; 400]);
    let mut lie = zip(&[("x.npy", &tiny)], CompressionMethod::Deflated);
    declare_size(&mut lie, declared);
    folder.with("lie.npz", &lie);
    let (said, advised) = folder.says("lie.npz", &[x()]);
    let expected = format!("lie.npz: array `x` declares {declared} bytes packed into ");
    assert!(said.starts_with(&expected), "{said}");
    assert!(
        said.ends_with(&format!(
            ", which a file of {} bytes cannot hold",
            lie.len()
        )),
        "{said}"
    );
    assert_eq!(advised, DAMAGED);

    let noise: Vec<u8> = (0..4_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut bomb = zip(
        &[("x.npy", &npy("<f4", "(500000000,)", &noise))],
        CompressionMethod::Stored,
    );
    declare_size(&mut bomb, declared);
    folder.with("bomb.npz", &bomb);
    let (said, advised) = folder.says("bomb.npz", &[x()]);
    let stored = noise.len() + header.len();
    assert_eq!(
        said,
        format!(
            "bomb.npz: array `x` claims to unfold from {stored} to {declared} bytes, which real data do not"
        )
    );
    assert_eq!(
        advised,
        "if the content is truly that repetitive, save it without compression"
    );

    let mut few = zip(
        &[("x.npy", &npy("<f4", "(300,)", &[0; 400]))],
        CompressionMethod::Deflated,
    );
    declare_size(&mut few, npy("<f4", "(300,)", &[]).len() as u32 + 1200);
    folder.with("few.npz", few);
    let (said, advised) = folder.says("few.npz", &[x()]);
    assert_eq!(
        said,
        "few.npz: array `x` is cut short: it declares 300 values and ends after about 0"
    );
    assert_eq!(advised, DAMAGED);
}

#[test]
fn arrays_without_numbers() {
    let folder = Folder::new();
    folder
        .with("objects.npz", data("objects.npz"))
        .with("structured.npy", data("structured.npy"))
        .with("names.npz", data("names.npz"))
        .with("half.npy", npy("<f2", "(3,)", &[0; 6]));
    let convert = "convert it before saving: np.asarray(values, dtype=np.float32)";
    folder.expect(
        "objects.npz",
        x(),
        "objects.npz: array `x` holds Python objects (dtype object, stored as a pickle); expected numbers",
        convert,
    );
    folder.expect(
        "structured.npy",
        x(),
        "structured.npy: the array is a structured array (named fields); expected plain numbers",
        "save each field as an array of its own: np.savez(file, x=values['x'], y=values['y'])",
    );
    folder.expect(
        "names.npz",
        Selection::named("x", "columns"),
        "names.npz: array `columns` holds text; expected numbers",
        "select an array of numbers",
    );
    folder.expect(
        "half.npy",
        x(),
        "half.npy: the array has dtype `<f2`; expected numbers: f4, f8, i1 to i8, u1 to u8 or bool",
        convert,
    );
}

#[test]
fn groups_that_are_not_there() {
    let folder = Folder::new();
    folder
        .with("names.npz", data("names.npz"))
        .with("table.csv", "pt,mass\n1,2\n")
        .with("bare.csv", "1,2,3\n")
        .with("single.npy", data("f8_be_F.npy"));
    let arrays = "the arrays are `x` (5×3), `y` (5×2), `columns` (3), `weight` (5)";
    folder.expect(
        "names.npz",
        Selection::named("weight", "wieght"),
        &format!("names.npz: there is no array `wieght`; {arrays}"),
        "did you mean `weight`? select it with --weight weight",
    );
    folder.expect(
        "names.npz",
        Selection::named("y", "energy"),
        &format!("names.npz: there is no array `energy`; {arrays}"),
        "say which arrays are `y` with --y NAME,NAME,...",
    );
    folder.expect(
        "table.csv",
        x(),
        "table.csv: there is no column `x`, `x1`, `x2`, ...; the columns are `pt`, `mass`",
        "say which columns are `x` with --x NAME,NAME,...",
    );
    folder.expect(
        "table.csv",
        Selection::named("x", "pt,Masss"),
        "table.csv: there is no column `Masss`; the columns are `pt`, `mass`",
        "did you mean `mass`? select it with --x mass",
    );
    let (said, advised) = folder.says("bare.csv", &[x(), y()]);
    assert_eq!(
        said,
        "bare.csv: has no header line, so nothing says which of its 3 columns are `x`"
    );
    assert_eq!(
        advised,
        "add a first line of names, such as `x1,x2,y1`, or give the numbers of the columns: --x 1,2"
    );
    let (said, advised) = folder.says("single.npy", &[x(), y()]);
    assert_eq!(said, "single.npy: holds one array; expected `x`, `y`");
    assert_eq!(
        advised,
        "put the arrays into one .npz file: np.savez(\"data.npz\", x=x, y=y)"
    );
    let absent = Dataset::open(folder.path("table.csv")).unwrap();
    assert!(
        absent
            .optional_group(&Selection::new("weight"))
            .unwrap()
            .is_none()
    );
    assert!(
        absent
            .optional_group(&Selection::named("weight", "w"))
            .is_err()
    );
    let unnamed = Dataset::open(folder.path("single.npy")).unwrap();
    assert!(
        unnamed
            .optional_group(&Selection::new("weight"))
            .unwrap()
            .is_none()
    );
}

#[test]
fn groups_of_different_lengths() {
    let folder = Folder::new();
    let values = [0.0f32; 200];
    let arrays = [
        Array::new("x", &[100], &values[..100]),
        Array::new("y", &[99, 2], &values[..198]),
    ];
    write(folder.path("pairs.npz"), false, &arrays).unwrap();
    let (said, advised) = folder.says("pairs.npz", &[x(), y()]);
    assert_eq!(
        said,
        "pairs.npz: array `x` has 100 rows but array `y` has 99"
    );
    assert_eq!(
        advised,
        "row i of one must belong to row i of the other; write both from the same events"
    );
}

#[test]
fn values_that_are_not_finite() {
    let folder = Folder::new();
    let mut values = vec![0.5f64; 400];
    values[137 * 2 + 1] = f64::NAN;
    values[150 * 2] = f64::INFINITY;
    values[160 * 2] = f64::NEG_INFINITY;
    let arrays = || [Array::new("y", &[200, 2], &values[..])];
    write(folder.path("pairs.npz"), false, &arrays()).unwrap();
    write(folder.path("pairs.csv"), false, &arrays()).unwrap();
    let expected = |file, kind, place| {
        format!(
            "{file}: {kind} `y` holds 3 values that are not finite; the first is NaN at {place}, column 1 (`y2`)"
        )
    };
    folder.expect(
        "pairs.npz",
        y(),
        &expected("pairs.npz", "array", "row 137"),
        REPAIR,
    );
    folder.expect(
        "pairs.csv",
        y(),
        &expected("pairs.csv", "group", "line 139"),
        REPAIR,
    );
    #[cfg(feature = "parquet")]
    {
        write(folder.path("pairs.parquet"), false, &arrays()).unwrap();
        let message = expected("pairs.parquet", "group", "row 137");
        folder.expect("pairs.parquet", y(), &message, REPAIR);
    }

    let columns: Vec<u8> = [1.0, 2.0, f32::NAN, 4.0, f32::INFINITY, 6.0]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let text = String::from_utf8_lossy(&npy("<f4", "(3, 2)", &[])).into_owned();
    assert!(text.contains("False"));
    let mut fortran = npy("<f4", "(3, 2)", &columns);
    let at = fortran
        .windows(5)
        .position(|word| word == b"False")
        .unwrap();
    fortran[at..at + 5].copy_from_slice(b"True ");
    folder.with("fortran.npy", fortran).expect(
        "fortran.npy",
        y(),
        "fortran.npy: the array holds 2 values that are not finite; the first is inf at row 1, column 1 (`y2`)",
        REPAIR,
    );
}

#[test]
fn values_beyond_f32() {
    let folder = Folder::new();
    let values = [1.0, 2.0, -1e300, 3.5e38];
    let arrays = || [Array::new("x", &[2, 2], &values[..])];
    let hint = "change the unit of this column; neb computes in 32-bit floats";
    let expected = |file, kind, place| {
        format!(
            "{file}: {kind} `x` holds 2 values that are too large for 32-bit floats (beyond 3.4e38); the first is -1e300 at {place}, column 0 (`x1`)"
        )
    };
    write(folder.path("a.npz"), false, &arrays()).unwrap();
    write(folder.path("a.csv"), false, &arrays()).unwrap();
    folder.expect("a.npz", x(), &expected("a.npz", "array", "row 1"), hint);
    folder.expect("a.csv", x(), &expected("a.csv", "group", "line 3"), hint);
}

#[test]
fn arrays_of_the_wrong_shape() {
    let folder = Folder::new();
    folder
        .with("cube.npy", data("cube_F.npy"))
        .with("scalar.npy", npy("<f4", "()", &[0; 4]))
        .with("rows.npy", npy("<f4", "(0, 3)", &[]))
        .with("cols.npy", npy("<f4", "(7, 0)", &[]));
    let reshape = "reshape it before saving: values.reshape(len(values), -1)";
    let fill = "write at least one row and one column";
    folder.expect(
        "cube.npy",
        x(),
        "cube.npy: the array has 3 dimensions (2×3×4); expected 1 or 2: rows, or rows and columns",
        reshape,
    );
    folder.expect(
        "scalar.npy",
        x(),
        "scalar.npy: the array has 0 dimensions (()); expected 1 or 2: rows, or rows and columns",
        reshape,
    );
    folder.expect("rows.npy", x(), "rows.npy: the array is empty (0×3)", fill);
    folder.expect("cols.npy", x(), "cols.npy: the array is empty (7×0)", fill);
}

#[test]
fn lines_that_are_not_rows() {
    let folder = Folder::new();
    folder
        .with("ragged.csv", "x1,x2\n1,2\n\n3\n")
        .with("word.csv", "x1,x2\n1,2\n3,four\n")
        .with("gap.csv", "x1,x2\n1,\n")
        .with("comma.csv", "x1;x2\n1,5;2,5\n")
        .with("header.csv", "x1,x2\n")
        .with("blank.csv", "\n\n# nothing\n")
        .with("twice.csv", "x1,x1\n1,2\n");
    folder.expect(
        "ragged.csv",
        x(),
        "ragged.csv: line 4 has 1 fields; the first line has 2",
        "give every line the same number of fields, with one separator throughout",
    );
    folder
        .with(
            "windows.csv",
            "x1,x2\r\n1,2\r\n\r\n# three\r\n3,4\r\n3,\r\n",
        )
        .with("short.csv", "1\n2\n\n#\n\n3\na")
        .with("infinite.csv", "x\r\n\r\n1\r\ninf\r\n");
    for (file, place) in [
        ("windows.csv", "windows.csv: line 6, column `x2`"),
        ("short.csv", "short.csv: line 7, column `x1`"),
        (
            "infinite.csv",
            "infinite.csv: group `x` holds 1 value that is not finite; the first is inf at line 4,",
        ),
    ] {
        let (said, _) = folder.says(file, &[x()]);
        assert!(said.starts_with(place), "{said}");
    }
    folder.expect(
        "word.csv",
        x(),
        "word.csv: line 3, column `x2`: `four` is not a number",
        "remove or repair this line, or select other columns",
    );
    folder.expect(
        "gap.csv",
        x(),
        "gap.csv: line 2, column `x2`: the field is empty; expected a number",
        "remove or repair this line; neb never drops data by itself",
    );
    folder.expect(
        "comma.csv",
        x(),
        "comma.csv: line 2, column `x1`: `1,5` is not a number",
        "write decimal points instead of decimal commas",
    );
    folder.expect(
        "header.csv",
        x(),
        "header.csv: holds a header line and no rows",
        "write one line of numbers per row",
    );
    folder.expect(
        "blank.csv",
        x(),
        "blank.csv: holds no rows",
        "write one line of numbers per row, after an optional header line of names",
    );
    folder.expect(
        "twice.csv",
        x(),
        "twice.csv: column `x1` is selected twice for `x`",
        "give every column a name of its own, and select it once",
    );
}

#[test]
fn text_with_and_without_header_is_told_apart() {
    let folder = Folder::new();
    let read = |content: &str, selection: Selection| {
        folder.with("table.csv", content);
        let table = Dataset::open(folder.path("table.csv"))
            .and_then(|data| data.group(&selection))
            .unwrap();
        (table.names().join(" "), table.into_values())
    };
    let rows = vec![1.0, 2.0, 3.0, 4.0];
    let named = |text: &str| (text.to_owned(), rows.clone());
    assert_eq!(read("1,2\n3,4", x()), named("x1 x2"));
    assert_eq!(read("y1,y2\n1,2\n3,4\n", y()), named("y1 y2"));
    assert_eq!(read("\u{feff}x1;x2\r\n1;2\r\n3;4\r\n", x()), named("x1 x2"));
    assert_eq!(
        read("x1\tx2\n1\t2\n# half way\n3\t4\n", x()),
        named("x1 x2")
    );
    assert_eq!(
        read("# made by hand, 2024\n1,2\n3,4\n", y()),
        named("y1 y2")
    );
    assert_eq!(
        read("# a,b\n1, 2\n3 ,4\n", Selection::named("x", "a,b")),
        named("a b")
    );
    assert_eq!(
        read("9,2,1\n9,4,3\n", Selection::named("x", "3,2")),
        named("x1 x2")
    );
    assert_eq!(
        read("\"x1\",id,\"x2\"\n1,a,2\n3,b,4\n", x()),
        named("x1 x2")
    );
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_that_cannot_be_used() {
    let folder = Folder::new();
    let whole = data("arrow_snappy.parquet");
    folder
        .with("a.parquet", &whole)
        .with("cut.parquet", &whole[..whole.len() - 9])
        .with("zstd.parquet", data("arrow_zstd.parquet"));
    let convert = "convert it to float or integer before saving, or select other columns";
    for (column, found) in [
        ("label", "dates, times or text"),
        ("date", "dates, times or text"),
        ("list.list.element", "lists"),
    ] {
        let message = format!("a.parquet: column `{column}` holds {found}; expected numbers");
        folder.expect(
            "a.parquet",
            Selection::named("x", column),
            &message,
            convert,
        );
    }
    folder.expect(
        "a.parquet",
        Selection::named("y", "f8_1,gaps"),
        "a.parquet: group `y` holds 2 values that are not finite; the first is null at row 1, column 1 (`gaps`)",
        REPAIR,
    );
    folder.expect(
        "zstd.parquet",
        Selection::named("x", "f4_1"),
        "zstd.parquet: column `f4_1` is compressed with zstd; expected snappy, gzip, lz4 or none",
        "save it again: df.to_parquet(file, compression=\"snappy\")",
    );
    let (said, advised) = folder.says("cut.parquet", &[x()]);
    assert!(
        said.starts_with("cut.parquet: is not a complete parquet table: "),
        "{said}"
    );
    assert_eq!(advised, DAMAGED);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_in_a_build_without_it() {
    let folder = Folder::new();
    folder
        .with("a.parquet", data("arrow_snappy.parquet"))
        .expect(
            "a.parquet",
            x(),
            "a.parquet: is a parquet file; this build of neb was made without parquet",
            "convert it to .npz or .csv, or build neb with the feature `parquet`",
        );
}
