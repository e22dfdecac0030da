//! Files written by numpy and pyarrow (`data/make.py`): value(row, column) = 3 row + column − 4.

use std::path::PathBuf;

use neb_data::{Dataset, Selection, Table};

const CODES: [&str; 11] = [
    "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1",
];

fn open(file: &str) -> Dataset {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    Dataset::open(folder.join(file)).unwrap()
}

fn read(file: &str, selection: &Selection) -> Table {
    open(file).group(selection).unwrap()
}

fn expected(code: &str) -> Vec<f32> {
    (0..15)
        .map(|index| match &code[..1] {
            "u" => index as f32,
            "b" => (index % 2) as f32,
            _ => index as f32 - 4.0,
        })
        .collect()
}

#[test]
fn npz_of_every_dtype_order_and_endianness() {
    for file in ["numpy_stored.npz", "numpy_deflated.npz"] {
        let data = open(file);
        assert_eq!(data.names().len(), CODES.len() * 4);
        for code in CODES {
            for (end, order) in [("le", "C"), ("le", "F"), ("be", "C"), ("be", "F")] {
                let name = format!("{code}_{end}_{order}");
                let table = data.group(&Selection::named("x", &name)).unwrap();
                assert_eq!(table.values(), expected(code), "{file} {name}");
                assert_eq!((table.rows(), table.cols()), (5, 3));
                assert_eq!(table.names()[2], format!("{name}3"));
            }
        }
    }
}

#[test]
fn npy_is_whatever_is_asked_for() {
    for file in ["f8_be_F.npy", "version_2.npy", "version_3.npy"] {
        let table = read(file, &Selection::new("y"));
        assert_eq!(table.values(), expected("f"), "{file}");
        assert_eq!(table.names(), ["y1", "y2", "y3"]);
    }
    let line = read("one_dimension.npy", &Selection::new("weight"));
    assert_eq!(line.values(), [1.5, -2.5, 3.5]);
    assert_eq!(line.names(), ["weight"]);
}

#[test]
fn arrays_of_three_dimensions_keep_their_shape() {
    let cube = open("cube_F.npy").array("any").unwrap();
    assert_eq!(cube.shape, [2, 3, 4]);
    let counted: Vec<f32> = (0..24).map(|index| index as f32).collect();
    assert_eq!(cube.values, counted);
}

#[test]
fn a_text_array_names_the_columns_it_fits() {
    let data = open("names.npz");
    let [x, y] = data
        .groups([&Selection::new("x"), &Selection::new("y")])
        .unwrap();
    assert_eq!(x.names(), ["pt", "mass", "η"]);
    assert_eq!(y.names(), ["y1", "y2"]);
    let weight = data.optional_group(&Selection::new("weight")).unwrap();
    assert_eq!(weight.unwrap().values(), [1.0; 5]);
    let big = read("names_big_endian.npz", &Selection::new("x"));
    assert_eq!(big.names(), ["pt", "mass", "eta"]);
}

#[test]
fn several_arrays_stand_side_by_side() {
    let table = read("names.npz", &Selection::named("x", "weight,y"));
    assert_eq!(table.names(), ["weight", "y1", "y2"]);
    assert_eq!(table.values()[..6], [1.0, -4.0, -3.0, 1.0, -1.0, 0.0]);
}

#[test]
fn an_unreadable_array_does_not_hide_its_neighbours() {
    let table = read("objects.npz", &Selection::new("y"));
    assert_eq!(table.values(), expected("i"));
}

#[test]
fn text_of_savetxt_is_read_with_its_header() {
    let table = read("savetxt.csv", &Selection::new("x"));
    assert_eq!(table.names(), ["x1", "x2", "x3"]);
    assert_eq!(table.values(), expected("f"));
    let spaces = read("savetxt_spaces.txt", &Selection::new("y"));
    assert_eq!(spaces.names(), ["y1", "y2", "y3"]);
    assert_eq!(spaces.values(), expected("f"));
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_every_type() {
    let data = open("arrow_snappy.parquet");
    for code in CODES {
        let list = format!("{code}_1,{code}_2,{code}_3");
        let table = data.group(&Selection::named("x", &list)).unwrap();
        assert_eq!(table.values(), expected(code), "{code}");
        assert_eq!(table.names()[1], format!("{code}_2"));
    }
    let largest = Selection::named("x", "largest_u4,largest_u8");
    let table = data.group(&largest).unwrap();
    assert_eq!(table.values()[..2], [4294967295.0, 18446744073709551615.0]);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_every_compression_without_c() {
    for file in ["arrow_gzip_v2.parquet", "arrow_lz4.parquet"] {
        let x = Selection::named("x", "f4_1,f4_2,f4_3");
        let y = Selection::named("y", "f8_");
        let [x, y] = open(file).groups([&x, &y]).unwrap();
        assert_eq!(x.values(), expected("f"), "{file}");
        assert_eq!(y.values(), expected("f"), "{file}");
    }
}
