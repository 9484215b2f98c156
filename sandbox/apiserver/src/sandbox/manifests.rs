//! Objects from files, and into files: what people write down for `kubectl apply -f`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::decode;
use crate::json;
use crate::kinds::{EVENTS, Kind, Kinds, LEASES, NODES};
use crate::sandbox::Sandbox;

/// Made by the API server or by what moves by itself, in every cluster.
const FURNITURE: [(&str, &str); 7] = [
    ("ConfigMap", "kube-root-ca.crt"),
    ("Namespace", "default"),
    ("Namespace", "kube-node-lease"),
    ("Namespace", "kube-public"),
    ("Namespace", "kube-system"),
    ("Service", "kubernetes"),
    ("ServiceAccount", "default"),
];

/// Why manifests could not be loaded: everything that is wrong with them.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct LoadErrors(pub Vec<String>);

/// Why manifests could not be saved.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct SaveError {
    path: PathBuf,
    source: io::Error,
}

/// An object and where it was written.
struct Manifest {
    place: String,
    object: Value,
}

impl Sandbox {
    /// Creates the objects of all `*.yaml`, `*.yml` and `*.json` files of a folder and of those within it, and returns
    /// how many they are.
    ///
    /// Namespaces and definitions of custom resources come first, the rest in the order of paths and documents.
    ///
    /// # Errors
    /// Everything that is wrong, each with its file and document. Where files cannot be read, or kinds are neither known
    /// nor defined by the manifests, nothing was created.
    pub fn load(&self, folder: &Path) -> Result<usize, LoadErrors> {
        let mut errors = Vec::new();
        let mut manifests = read_all(folder, &mut errors);
        manifests.sort_by_key(|manifest| rank(&manifest.object));
        // Kinds that the manifests themselves define are served only once their definition is there.
        let defined: BTreeSet<(String, String)> =
            manifests.iter().flat_map(|manifest| defines(&manifest.object)).collect();
        for Manifest { place, object } in &manifests {
            let text = |field: &str| json::text(object, &[field]).unwrap_or_default().to_owned();
            if let Err(why) = self.kind_of(object)
                && !defined.contains(&(text("apiVersion"), text("kind")))
            {
                errors.push(format!("{place}: {why}"));
            }
        }
        if !errors.is_empty() {
            return Err(LoadErrors(errors));
        }
        let count = manifests.len();
        for Manifest { place, object } in manifests {
            let created = self.kind_of(&object).and_then(|kind| {
                let created = self.create(&kind.resource, object);
                created.map_err(|status| status.message)
            });
            if let Err(why) = created {
                errors.push(format!("{place}: {why}"));
            }
        }
        if errors.is_empty() { Ok(count) } else { Err(LoadErrors(errors)) }
    }

    /// Writes what people made into a folder, a file for each object, so that [`Sandbox::load`] makes it again; returns
    /// how many files were written.
    ///
    /// Left out is what follows from the rest: objects with a controlling owner, events, nodes, leases, statuses, and
    /// what every cluster has.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<usize, SaveError> {
        let kinds: Vec<Arc<Kind>> = self.with_kinds(|kinds| kinds.iter().cloned().collect());
        let mut taken = BTreeSet::new();
        for kind in &kinds {
            let objects = self.list(&kind.resource, None).into_iter();
            for object in objects.filter(|object| is_made_by_people(kind, object)) {
                let path = folder.join(path_of(kind, &object, &mut taken));
                let is_secret = kind.resource.plural == "secrets";
                let text = serde_saphyr::to_string(&without_state(object)).unwrap_or_default();
                let written = write(&path, &text, is_secret);
                written.map_err(|source| SaveError { path, source })?;
            }
        }
        Ok(taken.len())
    }

    fn kind_of(&self, object: &Value) -> Result<Arc<Kind>, String> {
        let version = json::text(object, &["apiVersion"]).unwrap_or_default();
        let name = json::text(object, &["kind"]).unwrap_or_default();
        if version.is_empty() || name.is_empty() {
            return Err("an object must have apiVersion and kind".to_owned());
        }
        self.with_kinds(|kinds| find(kinds, version, name).ok_or_else(|| not_known(kinds, version, name)))
    }
}

fn find(kinds: &Kinds, version: &str, name: &str) -> Option<Arc<Kind>> {
    let creatable = |kind: &&Arc<Kind>| kind.verbs.contains(&"create");
    let mut all = kinds.iter().filter(creatable);
    all.find(|kind| kind.resource.kind == name && kind.resource.api_version() == version).cloned()
}

fn not_known(kinds: &Kinds, version: &str, name: &str) -> String {
    let versions: BTreeSet<String> =
        kinds.iter().filter(|kind| kind.resource.kind == name).map(|kind| kind.resource.api_version()).collect();
    if versions.is_empty() {
        return format!("the kind {name} is not served");
    }
    let versions: Vec<String> = versions.into_iter().collect();
    format!("{name} is served as {}, not as {version}", versions.join(", "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Namespace,
    Definition,
    Rest,
}

fn rank(object: &Value) -> Rank {
    match json::text(object, &["kind"]) {
        Some("Namespace") => Rank::Namespace,
        Some("CustomResourceDefinition") => Rank::Definition,
        Some(_) | None => Rank::Rest,
    }
}

/// The versions and kinds that a definition makes known.
fn defines(object: &Value) -> Vec<(String, String)> {
    if rank(object) != Rank::Definition {
        return Vec::new();
    }
    let text = |path: &[&str]| json::text(object, path).unwrap_or_default();
    let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
    let versions = json::list(object, &["spec", "versions"]).iter();
    let versions = versions.filter_map(|version| json::text(version, &["name"]));
    versions.map(|version| (format!("{group}/{version}"), kind.to_owned())).collect()
}

fn read_all(folder: &Path, errors: &mut Vec<String>) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    let mut paths = Vec::new();
    if let Err(error) = files(folder, &mut paths) {
        errors.push(format!("cannot list {}: {error}", folder.display()));
    }
    paths.sort();
    for path in paths {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                errors.push(format!("cannot read {}: {error}", path.display()));
                continue;
            }
        };
        for (number, document) in decode::documents(&text).enumerate() {
            let place = format!("{}, document {}", path.display(), number + 1);
            match document {
                Ok(Value::Null) => {}
                Ok(document) => expand(place, document, &mut manifests),
                Err(why) => errors.push(format!("{place}: {why}")),
            }
        }
    }
    manifests
}

/// A `List` stands for its items.
fn expand(place: String, document: Value, manifests: &mut Vec<Manifest>) {
    match document.get("items").and_then(Value::as_array) {
        Some(items) if document.get("kind").is_some_and(|kind| kind == "List") => {
            for (number, item) in items.iter().enumerate() {
                manifests.push(Manifest { place: format!("{place}, item {}", number + 1), object: item.clone() });
            }
        }
        Some(_) | None => manifests.push(Manifest { place, object: document }),
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json") {
            found.push(path);
        }
    }
    Ok(())
}

fn is_made_by_people(kind: &Kind, object: &Value) -> bool {
    let moves_by_itself = [EVENTS, NODES, LEASES].contains(&kind.resource);
    let owners = json::list(object, &["metadata", "ownerReferences"]);
    let controlled = owners.iter().any(|owner| owner.get("controller").is_some_and(|it| it == true));
    let furniture = FURNITURE.contains(&(&kind.resource.kind, json::name(object)));
    !moves_by_itself && !controlled && !furniture && !json::is_terminating(object)
}

/// What a person would have written: without what the API server fills in when the object is made.
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

/// The longest name of a file, without what ends it; file systems take 255 bytes.
const LONGEST_FILE: usize = 200;

/// A path of its own for each object: `shop/deployment.apps-web.yaml`.
fn path_of(kind: &Kind, object: &Value, taken: &mut BTreeSet<String>) -> PathBuf {
    let folder = json::text(object, &["metadata", "namespace"]).unwrap_or("cluster");
    let group = &kind.resource.group;
    let dot = if group.is_empty() { "" } else { "." };
    let mut file = format!("{}{dot}{group}-", kind.singular);
    // Names of some kinds may hold what separates paths or is not a file's name.
    for byte in json::name(object).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            file.push(char::from(byte));
        } else {
            file.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    file.truncate(LONGEST_FILE);
    // Names may be cut, and there are file systems on which `a` and `A` are one file.
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

/// Writes a file into a folder of its owner; nobody else reads what is secret.
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
        // The file may be there, from a save before.
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use kcm_api::{ObjectKey, Resource};
    use serde_json::json;

    use super::*;
    use crate::kinds::{CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS};

    const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: 'web:1' }] }
---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a temporary file");
        }
        folder
    }

    #[tokio::test]
    async fn namespaces_come_first_whatever_the_order_of_the_documents() {
        let sandbox = Sandbox::default();
        let folder = folder(&[("web.yaml", WEB), ("notes.txt", "not a manifest")]);
        assert_eq!(sandbox.load(folder.path()).expect("the manifests must load"), 2);
        assert!(sandbox.get(&DEPLOYMENTS, &ObjectKey::namespaced("shop", "web")).is_some());
    }

    #[tokio::test]
    async fn everything_wrong_is_told_and_nothing_created() {
        let sandbox = Sandbox::default();
        let folder = folder(&[
            ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: fine }"),
            ("b.yaml", "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: { name: web }"),
            ("c.yaml", "kind: [\n"),
            ("d.json", "{ \"kind\": \"Nothing\", \"apiVersion\": \"v1\" }"),
        ]);
        let errors = sandbox.load(folder.path()).expect_err("these manifests must be refused").0;
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors[1].ends_with("b.yaml, document 1: Deployment is served as apps/v1, not as apps/v1beta1"));
        assert!(errors[2].ends_with("d.json, document 1: the kind Nothing is not served"));
        assert!(sandbox.list(&CONFIG_MAPS, None).is_empty());
    }

    #[tokio::test]
    async fn nothing_is_created_where_a_kind_is_neither_known_nor_defined() {
        let sandbox = Sandbox::default();
        let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
            metadata: { name: widgets.example.org }\nspec: { group: example.org, scope: Namespaced, names: { plural: \
            widgets, kind: Widget }, versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { \
            type: object, x-kubernetes-preserve-unknown-fields: true } } }] }\n";
        let widget = "apiVersion: example.org/v1\nkind: Widget\nmetadata: { name: one }\non: yes\n";
        let gadget = "apiVersion: example.org/v1\nkind: Gadget\nmetadata: { name: one }\n";
        let files = folder(&[("a.yaml", definition), ("b.yaml", widget), ("c.yaml", gadget)]);
        let errors = sandbox.load(files.path()).expect_err("gadgets must be refused").0;
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with("c.yaml, document 1: the kind Gadget is not served"), "{errors:?}");
        let widgets = Resource::namespaced("example.org", "v1", "widgets", "Widget");
        assert!(sandbox.with_kinds(|kinds| kinds.get(&widgets).is_none()), "nothing was defined");
        fs::remove_file(files.path().join("c.yaml")).expect("it is there");
        assert_eq!(sandbox.load(files.path()).expect("these must load"), 2);
        // As the API reads YAML.
        assert_eq!(sandbox.list(&widgets, None)[0]["true"], true);
    }

    #[tokio::test]
    async fn each_object_has_a_file_of_its_own_and_secrets_are_their_owners() {
        let sandbox = Sandbox::default();
        let made = folder(&[(
            "a.yaml",
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: 'a:b' }\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: a_b }\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: { name: A_b }\n--- # one more\n\
             apiVersion: v1\nkind: Secret\nmetadata: { name: s }\n",
        )]);
        assert_eq!(sandbox.load(made.path()).expect("the manifests must load"), 4);
        let saved = tempfile::tempdir().expect("a temporary folder");
        for _ in 0..2 {
            assert_eq!(sandbox.save(saved.path()).expect("saving must work"), 4);
        }
        let mut paths = Vec::new();
        files(saved.path(), &mut paths).expect("the folder is readable");
        assert_eq!(paths.len(), 4, "{paths:?}");
        let role = saved.path().join("cluster/clusterrole.rbac.authorization.k8s.io-a%3Ab.yaml");
        assert!(paths.contains(&role), "{paths:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let access = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(access(saved.path().join("default/secret-s.yaml")), 0o600);
            assert_eq!(access(saved.path().join("default")), 0o700);
        }
    }

    #[tokio::test]
    async fn what_was_saved_loads_again() {
        let sandbox = Sandbox::default();
        sandbox.load(folder(&[("web.yaml", WEB)]).path()).expect("the manifests must load");
        let web = sandbox.get(&DEPLOYMENTS, &ObjectKey::namespaced("shop", "web")).expect("web must be there");
        let owned = json!({
            "metadata": {
                "name": "web-1", "namespace": "shop",
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": json::uid(&web), "controller": true,
                }],
            },
            "spec": web["spec"].as_object().map(|spec| json!({ "selector": spec["selector"], "template": spec["template"] })),
        });
        sandbox.create(&REPLICA_SETS, owned).expect("the replica set must be created");

        let saved = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(sandbox.save(saved.path()).expect("saving must work"), 2);
        let again = Sandbox::default();
        assert_eq!(again.load(saved.path()).expect("what was saved must load"), 2);
        let loaded = again.get(&DEPLOYMENTS, &ObjectKey::namespaced("shop", "web")).expect("web must be there");
        assert_eq!(loaded["spec"], web["spec"]);
        assert!(again.list(&REPLICA_SETS, None).is_empty());
    }
}
