//! A folder to run `neb` in, and the small files its tests need.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[cfg(unix)]
use std::time::{Duration, Instant};

use neb_data::Array;

/// A temporary folder, and the program run inside it.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Settings that train a small mixture in milliseconds.
pub(crate) const SMALL: [&str; 10] = [
    "--kind",
    "mixture",
    "--components",
    "2",
    "--hidden",
    "8",
    "--epochs",
    "2",
    "--batch",
    "64",
];

/// Settings that fit both stages in a fraction of a second.
pub(crate) const SMALL_TOML: &str = "\
[surrogate]
components = 2
hidden = [8]
epochs = 5
batch = 64

[source]
affine-k = 128
refine-k = 64
judge-k = 256
batch = 64
particles = 300
refine-epochs = 1
flow-layers = 2
flow-hidden = [8]
flow-epochs = 2
flow-batch = 64
";

/// Both stages with these settings; the output is yet to be named.
pub(crate) const FIT: &str = "fit --pairs pairs.npz --observations seen.npz --config small.toml";

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A folder with `pairs.npz` (500 rows) and `surrogate.safetensors` learned from them.
    pub(crate) fn with_surrogate() -> Self {
        let folder = Self::new();
        folder.succeed("simulate two-moons -n 500 --from proposal -o pairs.npz");
        folder.surrogate("pairs.npz", "surrogate.safetensors", "");
        folder
    }

    /// A folder with `pairs.npz` (600 rows) and `seen.npz` (400 observations) of two-moons, and `small.toml`.
    pub(crate) fn with_observations() -> Self {
        let folder = Self::new();
        folder.succeed("simulate two-moons -n 600 --from proposal -o pairs.npz");
        folder.succeed("simulate two-moons -n 400 --seed 2 -o seen.npz");
        std::fs::write(folder.path("small.toml"), SMALL_TOML).unwrap();
        folder
    }

    /// The same with the folder `run` fitted to them.
    pub(crate) fn with_run() -> Self {
        let folder = Self::with_observations();
        folder.succeed(&format!("{FIT} -o run"));
        folder
    }

    /// A path inside.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these arguments, separated by spaces, to be started inside the folder.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neb"));
        command
            .args(line.split_whitespace())
            .current_dir(self.folder.path());
        command
    }

    /// Runs the program.
    pub(crate) fn neb(&self, line: &str) -> Ended {
        Ended::new(self.command(line).output().unwrap())
    }

    /// Runs the program, which must succeed; returns its standard output.
    pub(crate) fn succeed(&self, line: &str) -> String {
        let ended = self.neb(line);
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        ended.stdout
    }

    /// Trains a small mixture.
    pub(crate) fn surrogate(&self, pairs: &str, output: &str, more: &str) -> String {
        self.succeed(&format!(
            "surrogate --pairs {pairs} -o {output} {} {more}",
            SMALL.join(" ")
        ))
    }

    /// Writes x and y as they are, two columns each, to `name`.
    pub(crate) fn write_pairs(&self, name: &str, x: &[f32], y: &[f32]) {
        let arrays = [
            Array::new("x", &[x.len() / 2, 2], x),
            Array::new("y", &[y.len() / 2, 2], y),
        ];
        neb_data::write(self.path(name), true, &arrays).unwrap();
    }

    /// Waits until a file appears that a program under way is to write.
    #[cfg(unix)]
    pub(crate) fn wait_for(&self, name: &str) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.path(name).exists() {
            assert!(Instant::now() < deadline, "{name} did not appear");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Every file with its content, and every folder.
    pub(crate) fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                    all.push((path, Vec::new()));
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    all.push((path, bytes));
                }
            }
        }
        all.sort();
        all
    }

    /// Runs the program, which must refuse: exit code 2, one `error:` line with all these words, a `hint:` line, nothing
    /// on standard output, and no file written, changed or lost.
    pub(crate) fn refused(&self, line: &str, words: &[&str]) {
        let before = self.contents();
        let ended = self.neb(line);
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert_eq!(ended.stdout, "", "{line}");
        assert!(ended.stderr.starts_with("error: "), "{line}: {ended:?}");
        let last = ended.stderr.trim_end().lines().last().unwrap();
        assert!(last.starts_with("hint: "), "{line}: {ended:?}");
        for word in words {
            assert!(
                ended.stderr.contains(word),
                "{line}: no `{word}` in {ended:?}"
            );
        }
        assert!(before == self.contents(), "{line}: the folder changed");
    }

    /// [`Folder::refused`] for `neb surrogate` with these pairs.
    pub(crate) fn pairs_refused(&self, pairs: &str, words: &[&str]) {
        let line = format!(
            "surrogate --pairs {pairs} -o new.safetensors {}",
            SMALL.join(" ")
        );
        self.refused(&line, words);
    }
}

impl Ended {
    fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Reads one group of a file of data.
pub(crate) fn read(path: &Path, role: &str) -> neb::Matrix {
    let data = neb_data::Dataset::open(path).unwrap();
    let table = data.group(&neb_data::Selection::new(role)).unwrap();
    let cols = table.cols();
    neb::Matrix::from_vec(table.into_values(), cols)
}
