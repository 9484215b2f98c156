//! Reading of the configuration file from the file system.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The size limit of a configuration file, far above any real one.
const LARGEST_FILE: u64 = 1 << 20;

/// The content of a regular file, which may be named by a symbolic link.
///
/// Other files are refused before they are opened, because opening a named pipe waits for another process.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, a socket or a device"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Returns the remedy for a file that cannot be read, as the end of a sentence.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the enum is not exhaustive")]
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ": check the path",
        io::ErrorKind::PermissionDenied => ": give the user of this process the right to read it",
        io::ErrorKind::IsADirectory => ": name the file in it",
        io::ErrorKind::InvalidInput => ": name a regular file",
        io::ErrorKind::FileTooLarge => ": a configuration file is a few kilobytes, so check the path",
        _ => "",
    }
}
