//! Loading objects from manifest files and saving them, in the form that `kubectl apply -f` takes.

pub(crate) mod load;
pub(crate) mod save;

#[cfg(test)]
mod tests {
    use std::fs;

    use kcm_api::{ObjectKey, Resource};
    use serde_json::json;

    use super::load::files;
    use crate::json;
    use crate::kinds::{CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS};
    use crate::sandbox::Sandbox;

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
    async fn namespaces_are_created_first_regardless_of_document_order() {
        let sandbox = Sandbox::default();
        let folder = folder(&[("web.yaml", WEB), ("notes.txt", "not a manifest")]);
        assert_eq!(sandbox.load(folder.path()).expect("the manifests must load"), 2);
        assert!(sandbox.get(&DEPLOYMENTS, &ObjectKey::namespaced("shop", "web")).is_some());
    }

    #[tokio::test]
    async fn all_errors_are_returned_and_nothing_is_created() {
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
    async fn nothing_is_created_if_a_kind_is_neither_served_nor_defined() {
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
        // YAML 1.1, as the API server reads it: `on` is a boolean.
        assert_eq!(sandbox.list(&widgets, None)[0]["true"], true);
    }

    #[tokio::test]
    async fn each_object_has_its_own_file_and_secrets_have_mode_0600() {
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
    async fn saved_manifests_load_again() {
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
