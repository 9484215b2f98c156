//! The kubeconfig of a sandbox, as text and in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use serde_json::json;

/// First line of every kubeconfig of a sandbox. A file with this line may be overwritten.
const MARK: &str = "# Kubeconfig of a sandbox, written anew at each start.";

/// Error of writing a kubeconfig.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// The file is not a kubeconfig of a sandbox.
    #[error("cannot write the kubeconfig to {}: what is there is not of a sandbox; move it away, or choose another path", .path.display())]
    NotOurs {
        /// Path of the kubeconfig file.
        path: PathBuf,
    },
    /// The folder is missing.
    #[error("cannot write the kubeconfig to {}: its folder does not exist; make it, or choose another path", .path.display())]
    NoFolder {
        /// Path of the kubeconfig file.
        path: PathBuf,
    },
    /// The file cannot be written, for example without permission.
    #[error("cannot write the kubeconfig to {}; choose a path in a folder of your own", .path.display())]
    Io {
        /// Path of the kubeconfig file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// The kubeconfig by which a client reaches the server.
pub(crate) fn text(server: &str, authority: &str, token: &str) -> String {
    // A JSON string is a YAML string as well.
    let authority = json!(ByteString(authority.as_bytes().to_vec()));
    let (server, token) = (json!(server), json!(token));
    format!(
        "{MARK}\n\
         apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: sandbox\n\
         \x20 cluster:\n\
         \x20   server: {server}\n\
         \x20   certificate-authority-data: {authority}\n\
         users:\n\
         - name: sandbox\n\
         \x20 user:\n\
         \x20   token: {token}\n\
         contexts:\n\
         - name: sandbox\n\
         \x20 context:\n\
         \x20   cluster: sandbox\n\
         \x20   user: sandbox\n\
         current-context: sandbox\n"
    )
}

/// Writes a kubeconfig to a file that only its owner may read. Readers see the old or the new file, never a part.
///
/// `suffix` makes the name of the temporary file beside it unique.
pub(crate) fn write(path: &Path, text: &str, suffix: &str) -> Result<(), KubeconfigError> {
    let failed = |source| KubeconfigError::Io { path: path.to_owned(), source };
    if !may_overwrite(path).map_err(failed)? {
        return Err(KubeconfigError::NotOurs { path: path.to_owned() });
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(KubeconfigError::NoFolder { path: path.to_owned() });
    }
    let temporary = folder.join(format!(".kubeconfig-{suffix}"));
    let written = fill(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // A file that was not created need not be removed.
        drop(fs::remove_file(&temporary));
        failed(error)
    })
}

fn may_overwrite(path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    if !found.is_file() {
        return Ok(false);
    }
    let mut first = Vec::new();
    BufReader::new(File::open(path)?.take(MARK.len() as u64 + 1)).read_until(b'\n', &mut first)?;
    Ok(first.strip_suffix(b"\n") == Some(MARK.as_bytes()))
}

fn fill(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("there must be a place for files")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        entries.map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn kube_reads_the_text() {
        let text = text("https://127.0.0.1:1", "a certificate", "a-\"token\"");
        let read = kube::config::Kubeconfig::from_yaml(&text).expect("it is a kubeconfig");
        assert_eq!(read.current_context.as_deref(), Some("sandbox"));
        assert_eq!(read.contexts[0].name, "sandbox");
        let cluster = read.clusters[0].cluster.as_ref().expect("a cluster is given");
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        let authority: ByteString =
            serde_json::from_value(json!(cluster.certificate_authority_data)).expect("it is base64");
        assert_eq!(authority.0, b"a certificate");
        let user = serde_json::to_value(&read.auth_infos[0]).expect("it is data");
        assert_eq!(user["user"]["token"], "a-\"token\"");
    }

    #[test]
    fn writes_a_file_and_overwrites_its_own() {
        let folder = folder();
        let path = folder.path().join("config");
        for server in ["https://127.0.0.1:1", "https://127.0.0.1:2"] {
            let text = text(server, "", "t");
            write(&path, &text, "x").expect("the place is free or ours");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        assert_eq!(names(folder.path()), ["config"], "nothing temporary is left");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder();
        let path = folder.path().join("config");
        let ours = text("", "", "t");
        fs::write(&path, &ours).expect("it is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("it is ours");
        write(&path, &ours, "x").expect("the file is ours");
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn leaves_what_is_not_its_own() {
        let folder = folder();
        for (name, content) in [("other", "apiVersion: v1\n"), ("empty", ""), ("like", &format!("{MARK}.\n"))] {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("it is writable");
            let refused = write(&path, "new", "x");
            assert!(matches!(refused, Err(KubeconfigError::NotOurs { .. })), "{name}: {refused:?}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), content);
        }
        assert!(matches!(write(folder.path(), "new", "x"), Err(KubeconfigError::NotOurs { .. })));
    }

    #[test]
    fn says_which_folder_is_missing() {
        let folder = folder();
        let path = folder.path().join("none").join("config");
        let refused = write(&path, "new", "x").expect_err("there is no such folder").to_string();
        assert!(refused.contains(&path.display().to_string()) && refused.contains("folder"), "{refused}");
    }
}
