//! Where the result is written: standard output, a file, or a folder.
//!
//! Promises: a file is written whole or not at all, and what was there before stays until then; a file with a token is
//! readable only by its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Where the result is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
    /// A folder, which is created if it is not there.
    Folder(PathBuf),
}

/// For files with a token.
const PRIVATE: u32 = 0o600;
/// For others.
const PUBLIC: u32 = 0o644;

/// A file of a folder.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) is_private: bool,
}

impl Output {
    /// Checks whether it can be written, and leaves nothing behind.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File(path) if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Self::File(path) if is_special(path) => OpenOptions::new().append(true).open(path).map(drop),
            Self::Folder(path) if path.is_dir() => try_out(path),
            Self::Folder(path) if path.exists() => Err(io::ErrorKind::NotADirectory.into()),
            Self::File(path) | Self::Folder(path) => try_out(&folder_of(path)),
        }
    }

    /// Writes what only its owner may read to standard output or a file.
    pub(crate) fn write(&self, text: impl AsRef<[u8]>) -> io::Result<()> {
        let text = text.as_ref();
        match self {
            Self::File(path) if is_special(path) => OpenOptions::new().append(true).open(path)?.write_all(text),
            Self::File(path) | Self::Folder(path) => replace(path, text, PRIVATE),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text)?;
                stdout.flush()
            }
        }
    }

    /// Writes files into a folder.
    pub(super) fn write_all(&self, parts: &[Part]) -> io::Result<()> {
        let Self::Folder(folder) = self else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        if !folder.is_dir() {
            fs::create_dir(folder)?;
        }
        for part in parts {
            replace(
                &folder.join(part.name),
                part.text.as_bytes(),
                if part.is_private { PRIVATE } else { PUBLIC },
            )?;
        }
        Ok(())
    }
}

/// True for a pipe, a terminal and the like, which cannot be replaced by a file.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir())
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Makes a file there and removes it.
fn try_out(folder: &Path) -> io::Result<()> {
    let path = folder.join(unfinished("try"));
    create(&path, PRIVATE)?;
    fs::remove_file(path)
}

fn unfinished(name: &str) -> String {
    format!(".{name}.{:08x}.part", fastrand::u32(..))
}

fn create(path: &Path, mode: u32) -> io::Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Replaces the file at this path; for a link, the file that it leads to.
fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = folder_of(&path).join(unfinished(&name));
    let written = create(&part, mode).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&part, &path));
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_private_and_replaces_what_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        let output = Output::File(link.clone());
        output.check().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        output.write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, PRIVATE);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn refuses_what_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        for output in [
            Output::File(folder.path().to_owned()),
            Output::File(folder.path().join("none/file")),
            Output::File(file.join("x")),
            Output::Folder(file.clone()),
            Output::Folder(folder.path().join("none/folder")),
        ] {
            assert!(output.check().is_err(), "{output:?}");
        }
        let new = folder.path().join("new");
        for output in [Output::File(new.clone()), Output::Folder(new.clone()), Output::Stdout] {
            output.check().unwrap();
        }
        assert!(!new.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn only_what_holds_a_token_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        let part = |name, is_private| Part {
            name,
            text: name.to_owned(),
            is_private,
        };
        Output::Folder(new.clone())
            .write_all(&[part("a", true), part("b", false)])
            .unwrap();
        let mode = |name: &str| new.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("a"), PRIVATE);
        assert_eq!(mode("b") & 0o644, mode("b"));
        assert_eq!(mode("b") & 0o600, 0o600);
    }
}
