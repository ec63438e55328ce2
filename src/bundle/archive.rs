//! The archive: files in the format of tar (POSIX.1-1988, ustar), packed by gzip.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder that all files are in.
const FOLDER: &str = "edge-syncer-bundle";
/// A tar archive consists of blocks of that size, and two empty ones end it.
const BLOCK: usize = 512;

/// A file in the archive.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The packed archive. `time` is that of all files, in seconds since 1970.
pub(super) fn packed(files: &[File], time: u64) -> io::Result<Vec<u8>> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::best());
    for File { name, text } in files {
        archive.write_all(&header(&[FOLDER, "/", name].concat(), text.len(), time))?;
        archive.write_all(text.as_bytes())?;
        archive.write_all(&[0; BLOCK][..text.len().next_multiple_of(BLOCK) - text.len()])?;
    }
    archive.write_all(&[0; 2 * BLOCK])?;
    archive.finish()
}

/// The block before a file, whose owner alone may read it. Names are short enough for it.
fn header(name: &str, size: usize, time: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, &format!("{time:011o}"));
    // The sum is made with blanks in its place.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn tar_reads_what_was_packed() {
        let files = ["", "a\n", &"x".repeat(BLOCK), &"\u{f6}\n".repeat(BLOCK)].map(str::to_owned);
        let names = ["empty.txt", "a.txt", "block.txt", "long.txt"];
        let files: Vec<File> = names
            .into_iter()
            .zip(files)
            .map(|(name, text)| File { name, text })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar")
            .args(["-xzf", "-", "-C"])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let packed = packed(&files, 1_795_269_787).unwrap();
        tar.stdin.take().unwrap().write_all(&packed).unwrap();
        assert!(tar.wait().unwrap().success());
        for File { name, text } in &files {
            let path = folder.path().join(FOLDER).join(name);
            assert_eq!(&std::fs::read_to_string(path).unwrap(), text, "{name}");
        }
    }
}
