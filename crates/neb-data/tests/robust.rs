//! Whatever bytes a file holds, reading ends in a table of finite numbers or in an error, never in a panic.

use std::fs;
use std::path::PathBuf;

use neb_data::{Dataset, Selection};
use proptest::prelude::*;

const FILES: &[&str] = &[
    "f8_be_F.npy",
    "version_2.npy",
    "structured.npy",
    "names.npz",
    "names_big_endian.npz",
    "objects.npz",
    "savetxt.csv",
    #[cfg(feature = "parquet")]
    "arrow_gzip_v2.parquet",
    #[cfg(feature = "parquet")]
    "arrow_lz4.parquet",
    #[cfg(feature = "parquet")]
    "arrow_snappy.parquet",
];

/// Reads every group that the file offers.
fn survive(file: &str, content: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, content).unwrap();
    let Ok(data) = Dataset::open(&path) else {
        return;
    };
    let mut selections = vec![Selection::new("x"), Selection::new("y")];
    selections.extend(data.names().iter().map(|name| Selection::named("x", name)));
    for selection in &selections {
        if let Ok(table) = data.group(selection) {
            assert!(table.values().iter().all(|value| value.is_finite()));
            assert_eq!(table.values().len(), table.rows() * table.cols());
        }
    }
    let _ = data.array("x");
}

fn original(file: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read(folder.join(file)).unwrap()
}

/// One changed byte on which the decoder itself panics (found by the test below).
#[cfg(feature = "parquet")]
#[test]
fn contradictory_parquet_pages_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.parquet");
    let mut content = original("arrow_snappy.parquet");
    content[11738] = 129;
    fs::write(&path, content).unwrap();
    let data = Dataset::open(&path).unwrap();
    let errors: Vec<String> = (data.names().iter())
        .filter_map(|name| data.group(&Selection::named("x", name)).err())
        .map(|error| error.to_string())
        .collect();
    let expected = format!("{}: holds pages that contradict each other", path.display());
    assert!(errors.contains(&expected), "{errors:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn cut_and_changed_files(
        file in prop::sample::select(FILES),
        keep in 0.0..1.5f64,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut content = original(file);
        content.truncate((keep * content.len() as f64) as usize);
        if !content.is_empty() {
            for (at, byte) in changes {
                let at = at.index(content.len());
                content[at] = byte;
            }
        }
        survive(file, &content);
    }

    #[test]
    fn npy_headers_of_any_text(dict in "[\\{\\}\\(\\)\\[\\]',: 0-9a-zA-Z<>|é]{0,80}", payload in 0usize..64) {
        let mut content = b"\x93NUMPY\x01\x00".to_vec();
        content.extend((dict.len() as u16).to_le_bytes());
        content.extend(dict.as_bytes());
        content.extend(vec![0x40; payload]);
        survive("a.npy", &content);
    }

    #[test]
    fn npy_headers_of_any_type_and_shape(
        descr in "[<>|=]?[bifuUSOcmMV][0-9]{0,3}",
        fortran in any::<bool>(),
        shape in prop::collection::vec(prop_oneof![0usize..6, any::<usize>()], 0..4),
        payload in 0usize..256,
    ) {
        let fortran = if fortran { "True" } else { "False" };
        let sizes: String = shape.iter().map(|size| format!("{size},")).collect();
        let dict = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({sizes}), }}");
        let mut content = b"\x93NUMPY\x01\x00".to_vec();
        content.extend((dict.len() as u16).to_le_bytes());
        content.extend(dict.as_bytes());
        content.extend(vec![0x40; payload]);
        survive("a.npy", &content);
    }

    #[test]
    fn text_of_any_kind(text in "[0-9xy1.,;\t\n\r\"# eE+-]{0,200}") {
        survive("a.csv", text.as_bytes());
    }
}
