//! Output files that are either complete or absent.
//!
//! The content goes to a temporary file in the folder of the target, is flushed to the disk, and only then takes the
//! target's name; last, the folder itself is flushed. A full disk, a crash or a failing writer leaves the previous file
//! (or none) in place, never half a file.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

const BUFFER: usize = 1 << 18;

/// Where an output file is written: any seekable writer that may move between threads.
pub trait Output: Write + Seek + Send {}

impl<W: Write + Seek + Send> Output for W {}

/// Writes `path` by calling `fill` with a buffered writer; the file appears only if everything succeeded.
///
/// An existing file is replaced only with `force`; a symbolic link is followed.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("summary.json");
/// use std::io::Write;
///
/// neb_data::write_atomically(&path, false, |writer| writeln!(writer, "{{\"auc\": 0.5}}"))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "{\"auc\": 0.5}\n");
///
/// let refused = neb_data::write_atomically(&path, false, |writer| writeln!(writer, "again"));
/// assert!(refused.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the target exists and `force` is not set, if it is not a regular file, if the folder cannot be written, or if `fill`
/// fails; in each case nothing is left behind.
pub fn write_atomically(
    path: impl AsRef<Path>,
    force: bool,
    fill: impl FnOnce(&mut dyn Output) -> io::Result<()>,
) -> Result<()> {
    let path = path.as_ref();
    check_target(path, force)?;
    let target = resolve_link(path);
    let folder = folder_of(&target);

    let failed = |source| Error::writing(path, source);
    let mut temporary = temporary_in(folder).map_err(failed)?;
    fill_and_sync(temporary.as_file_mut(), fill).map_err(failed)?;
    let persisted = if force {
        temporary.persist(&target)
    } else {
        temporary.persist_noclobber(&target)
    };
    persisted.map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => exists_already(path),
        _ => failed(refused.error),
    })?;
    sync_folder(folder).map_err(failed)
}

/// Refuses a target that [`write_atomically`] would refuse: call it before hours of work, not after.
///
/// # Errors
/// If the target exists and `force` is not set, if it is not a regular file, or if its folder does not exist or does not
/// let us write.
pub fn check_target(path: impl AsRef<Path>, force: bool) -> Result<()> {
    let path = path.as_ref();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::file(
            path,
            "is a folder; expected the name of a file to write",
            "add a file name to the path",
        )),
        Ok(found) if !found.is_file() => Err(Error::file(
            path,
            "is a device or a pipe; expected the name of a file to write",
            "write to a regular file, then copy it",
        )),
        Ok(_) if !force => Err(exists_already(path)),
        Ok(_) => check_folder(path, folder_of(&resolve_link(path))),
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            if folder.is_dir() {
                check_folder(path, folder)
            } else {
                Err(Error::file(
                    path,
                    format!("the folder {} does not exist", folder.display()),
                    "create the folder first",
                ))
            }
        }
        Err(refused) => Err(Error::writing(path, refused)),
    }
}

/// Tries the folder with a file that vanishes at once.
fn check_folder(path: &Path, folder: &Path) -> Result<()> {
    temporary_in(folder)
        .map(drop)
        .map_err(|refused| Error::writing(path, refused))
}

fn exists_already(path: &Path) -> Error {
    Error::file(
        path,
        "exists already and was not touched",
        "choose another name, or pass --force to replace it",
    )
}

fn fill_and_sync(
    file: &mut fs::File,
    fill: impl FnOnce(&mut dyn Output) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    fill(&mut writer)?;
    writer.flush()?;
    writer.get_ref().sync_all()
}

/// A temporary file that will have the permissions of any other new file (by default they are private to the user).
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".neb-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
        builder.tempfile_in(folder)
    }
    #[cfg(not(unix))]
    builder.tempfile_in(folder)
}

fn resolve_link(path: &Path) -> PathBuf {
    if path.is_symlink() {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    } else {
        path.to_owned()
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str() != OsStr::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_failing_writer_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let error = write_atomically(&path, false, |writer| {
            writer.write_all(&[b'1'; 1 << 20])?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "{}: cannot be written: no space left on the disk",
                path.display()
            )
        );
        assert_eq!(
            error.hint(),
            Some("free some space or choose another disk; no partial file was left behind")
        );
        assert!(names_in(folder.path()).is_empty());
    }

    #[test]
    fn a_failing_writer_keeps_the_previous_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "before").unwrap();
        let failed = write_atomically(&path, true, |writer| {
            writer.write_all(b"after")?;
            Err(io::Error::other("the simulator stopped"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names_in(folder.path()), ["out.csv"]);
    }

    #[test]
    fn an_existing_file_is_replaced_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "before").unwrap();
        let error = write_atomically(&path, false, |_| panic!("must not be called")).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{}: exists already and was not touched", path.display())
        );
        assert_eq!(
            error.hint(),
            Some("choose another name, or pass --force to replace it")
        );
        write_atomically(&path, true, |writer| writer.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let error = write_atomically(&path, false, |writer| {
            fs::write(&path, "from another program")?;
            writer.write_all(b"ours")
        })
        .unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("exists already and was not touched")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "from another program");
        assert_eq!(names_in(folder.path()), ["out.csv"]);
    }

    #[test]
    fn folders_and_missing_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomically(folder.path(), true, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("is a folder"));
        let path = folder.path().join("absent").join("out.csv");
        let error = write_atomically(&path, true, |_| Ok(())).unwrap_err();
        assert!(
            error.to_string().ends_with("absent does not exist"),
            "{error}"
        );
        assert_eq!(error.hint(), Some("create the folder first"));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_never_replaced() {
        let error = write_atomically("/dev/null", true, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("is a device or a pipe"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_and_permissions_are_those_of_a_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "before").unwrap();
        let ordinary = fs::metadata(&target).unwrap().permissions().mode();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_atomically(&link, true, |writer| writer.write_all(b"after")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode(),
            ordinary
        );
    }
}
