//! Directories of the machine that this program runs on.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use kcm_framework::api::views::PersistentVolume;

/// Parent of the directories that are provisioned.
const PROVISIONED: &str = "/tmp/hostpath_pv";
const TEMPORARY: &str = "/tmp";
const MODE: u32 = 0o750;

/// A directory that cannot be deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    /// The message continues as upstream's.
    #[error("host_path deleter only supports /tmp/.+ but received provided {0}")]
    Outside(String),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Returns the path of a host path volume.
pub(super) fn path_of(volume: &PersistentVolume) -> String {
    let raw = volume.raw(&["spec", "hostPath", "path"]);
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Returns the path that is provisioned for a claim: the same after a restart, so that no directory is left behind.
pub(super) fn path_for(claim: &str) -> String {
    format!("{PROVISIONED}/{claim}")
}

/// Creates the directory at `path` with its parents. An existing one is no error.
pub(super) fn create(path: &str) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(MODE).create(path)
}

/// Deletes the directory or file at `path`, which must be beneath `/tmp`. An absent one is no error.
pub(super) fn delete(path: &str) -> Result<(), DeleteError> {
    let Some(cleaned) = beneath_temporary(path) else { return Err(DeleteError::Outside(path.to_owned())) };
    let Some(parent) = cleaned.parent() else { return Err(DeleteError::Outside(path.to_owned())) };
    match parent.canonicalize() {
        // A link on the way may lead out.
        Ok(real) if !real.starts_with(Path::new(TEMPORARY).canonicalize()?) => {
            return Err(DeleteError::Outside(path.to_owned()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let removed = match std::fs::symlink_metadata(&cleaned) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&cleaned),
        Ok(_) => std::fs::remove_file(&cleaned),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

/// Returns the path without `.` and `..`, if it is beneath `/tmp`.
pub(super) fn beneath_temporary(path: &str) -> Option<PathBuf> {
    let mut cleaned = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::RootDir => cleaned.push("/"),
            Component::Normal(name) => cleaned.push(name),
            Component::ParentDir => {
                cleaned.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) => return None,
        }
    }
    let is_beneath = cleaned.starts_with(TEMPORARY) && cleaned != Path::new(TEMPORARY);
    is_beneath.then_some(cleaned)
}
