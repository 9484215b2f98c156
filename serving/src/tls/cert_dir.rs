//! The self-signed pair in `--cert-dir`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;

use super::key_pair::{KeyPairFiles, PairError};
use super::self_signed;

/// Writes a self-signed pair unless both files exist.
///
/// # Errors
/// If only one exists, or the files cannot be written.
pub(super) fn generate_if_missing(files: &KeyPairFiles, bound: IpAddr, now: Timestamp) -> Result<(), PairError> {
    match (files.cert.exists(), files.key.exists()) {
        (true, true) => return Ok(()),
        (true, false) => return Err(PairError::Half { there: files.cert.clone(), missing: files.key.clone() }),
        (false, true) => return Err(PairError::Half { there: files.key.clone(), missing: files.cert.clone() }),
        (false, false) => {}
    }
    let pair = self_signed::generate(bound, now).map_err(PairError::Generate)?;
    write(&files.key, &pair.key, 0o600)?;
    write(&files.cert, &pair.cert, 0o644)?;
    tracing::info!(cert = %files.cert.display(), key = %files.key.display(), "Generated self-signed cert");
    Ok(())
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), PairError> {
    let written = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(content)
    };
    written().map_err(|source| PairError::Write { path: path.to_owned(), source })
}
