//! Writing objects as manifest files.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::json;
use crate::kinds::{EVENTS, Kind, LEASES, NODES};
use crate::sandbox::Sandbox;

/// Objects that the API server, the simulated cluster or a controller creates in every cluster or namespace.
const INITIAL_OBJECTS: [(&str, &str); 8] = [
    ("ConfigMap", "kube-apiserver-legacy-service-account-token-tracking"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("Namespace", "default"),
    ("Namespace", "kube-node-lease"),
    ("Namespace", "kube-public"),
    ("Namespace", "kube-system"),
    ("Service", "kubernetes"),
    ("ServiceAccount", "default"),
];

/// Error writing a manifest file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct SaveError {
    path: PathBuf,
    source: io::Error,
}

impl Sandbox {
    /// Writes the objects that users created into a folder, one file per object, in the form that [`Sandbox::load`]
    /// reads; returns the number of files.
    ///
    /// Omits what the cluster creates itself: objects with a controlling owner, events, nodes, leases, statuses, and the
    /// initial objects.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<usize, SaveError> {
        let kinds: Vec<Arc<Kind>> = self.with_kinds(|kinds| kinds.iter().cloned().collect());
        let mut taken = BTreeSet::new();
        for kind in &kinds {
            let objects = self.list(&kind.resource, None).into_iter();
            for object in objects.filter(|object| is_created_by_user(kind, object)) {
                let path = folder.join(path_of(kind, &object, &mut taken));
                let is_secret = kind.resource.plural == "secrets";
                let text = serde_saphyr::to_string(&without_state(object)).unwrap_or_default();
                let written = write(&path, &text, is_secret);
                written.map_err(|source| SaveError { path, source })?;
            }
        }
        Ok(taken.len())
    }
}

fn is_created_by_user(kind: &Kind, object: &Value) -> bool {
    let written_by_system = [EVENTS, NODES, LEASES].contains(&kind.resource);
    let owners = json::list(object, &["metadata", "ownerReferences"]);
    let controlled = owners.iter().any(|owner| owner.get("controller").is_some_and(|it| it == true));
    let initial = INITIAL_OBJECTS.contains(&(&kind.resource.kind, json::name(object)));
    !written_by_system && !controlled && !initial && !json::is_terminating(object)
}

/// Removes the fields that the API server sets on creation.
fn without_state(mut object: Value) -> Value {
    for field in
        ["creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"]
    {
        json::set(&mut object, &["metadata", field], None);
    }
    json::set(&mut object, &["status"], None);
    match json::text(&object, &["kind"]) {
        Some("Pod") => json::set(&mut object, &["spec", "nodeName"], None),
        Some("Service") if json::text(&object, &["spec", "clusterIP"]) != Some("None") => {
            for field in ["clusterIP", "clusterIPs"] {
                json::set(&mut object, &["spec", field], None);
            }
        }
        Some("Namespace") => json::set(&mut object, &["spec"], None),
        Some(_) | None => {}
    }
    object
}

/// Maximum length of a file name without its suffix; file systems allow 255 bytes.
const LONGEST_FILE: usize = 200;

/// Returns a unique path for an object, as `shop/deployment.apps-web.yaml`.
fn path_of(kind: &Kind, object: &Value, taken: &mut BTreeSet<String>) -> PathBuf {
    let folder = json::text(object, &["metadata", "namespace"]).unwrap_or("cluster");
    let group = &kind.resource.group;
    let dot = if group.is_empty() { "" } else { "." };
    let mut file = format!("{}{dot}{group}-", kind.singular);
    // Names of some kinds may contain path separators or characters that file names may not.
    for byte in json::name(object).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            file.push(char::from(byte));
        } else {
            file.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    file.truncate(LONGEST_FILE);
    // Names may be truncated, and some file systems ignore case.
    let mut path = format!("{folder}/{file}");
    let mut number = 2;
    while !taken.insert(path.to_lowercase()) {
        path = format!("{folder}/{file}~{number}");
        number += 1;
    }
    PathBuf::from(path + ".yaml")
}

fn hex(digit: u8) -> char {
    char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

/// Writes a file, creating its folder with mode 0700; secrets get mode 0600.
fn write(path: &Path, text: &str, is_secret: bool) -> io::Result<()> {
    let (mut folders, mut options) = (fs::DirBuilder::new(), fs::OpenOptions::new());
    folders.recursive(true);
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        folders.mode(0o700);
        if is_secret {
            options.mode(0o600);
        }
    }
    path.parent().map_or(Ok(()), |folder| folders.create(folder))?;
    let mut file = options.open(path)?;
    #[cfg(unix)]
    if is_secret {
        use std::os::unix::fs::PermissionsExt as _;
        // The file may exist from a previous save.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}
