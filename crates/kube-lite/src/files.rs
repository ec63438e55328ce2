//! Files that are named by the user or a kubeconfig: kubeconfigs, tokens, certificates.
//!
//! Promises: reading one neither blocks for ever nor fills the memory, whatever is in its place. There is one thread,
//! so a pipe that nobody writes to would stop everything.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest file that is read: kubeconfigs and bundles of certificates have some hundred kilobytes.
pub(super) const FILE_LIMIT: u64 = 1 << 20;
/// The longest token: no server accepts larger headers.
pub(super) const TOKEN_LIMIT: usize = 64 << 10;

/// `O_NONBLOCK` of Linux on amd64, arm64, armv7 and s390x: opening a pipe does not wait for a writer. On other systems
/// only the type of the file is checked before it is opened.
const NONBLOCK: i32 = if cfg!(target_os = "linux") { 0o4000 } else { 0 };

/// What is in a regular file of at most [`FILE_LIMIT`] bytes; links are followed.
pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    // Opening a device may have consequences.
    check(&path.metadata()?)?;
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCK).open(path)?;
    check(&file.metadata()?)?;
    read_all(file)
}

/// The same, as text.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "the file is not UTF-8"))
}

/// The same of a file, or of what comes from stdin if the file is called `-`.
pub fn read_text_or_stdin(file: &str) -> io::Result<String> {
    if file != "-" {
        return read_text(file);
    }
    let mut text = String::new();
    let length = io::stdin().lock().take(FILE_LIMIT + 1).read_to_string(&mut text)?;
    if length as u64 > FILE_LIMIT {
        return Err(too_large());
    }
    Ok(text)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if metadata.len() > FILE_LIMIT {
        return Err(too_large());
    }
    Ok(())
}

/// It may grow meanwhile.
fn read_all(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(too_large());
    }
    Ok(bytes)
}

fn too_large() -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, "it has more than 1 MiB")
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// Puts a pipe that nobody writes to in the place of a file.
    pub(crate) fn make_pipe(path: &Path) {
        let _ = fs::remove_file(path);
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn reads_regular_files_that_are_not_large_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink(path("file"), path("link")).unwrap();
        fs::write(path("full"), vec![b'x'; 1 << 20]).unwrap();
        fs::write(path("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
        fs::write(path("bytes"), [0xff]).unwrap();
        make_pipe(&path("pipe"));
        symlink(path("pipe"), path("linked pipe")).unwrap();
        assert_eq!(read_text(path("link")).unwrap(), "text");
        assert_eq!(read(path("full")).unwrap().len(), 1 << 20);
        let kind = |path: &Path| read_text(path).unwrap_err().kind();
        assert_eq!(kind(&path("large")), ErrorKind::FileTooLarge);
        assert_eq!(kind(&path("pipe")), ErrorKind::InvalidInput);
        assert_eq!(kind(&path("linked pipe")), ErrorKind::InvalidInput);
        assert_eq!(kind(Path::new("/dev/zero")), ErrorKind::InvalidInput);
        assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
        assert_eq!(kind(&path("none")), ErrorKind::NotFound);
        assert_eq!(kind(&path("bytes")), ErrorKind::InvalidData);
    }
}
