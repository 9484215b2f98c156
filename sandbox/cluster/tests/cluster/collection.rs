//! Garbage collection.

use kcm_sandbox_apiserver::{CONFIG_MAPS, Status};
use serde_json::{Value, json};

use crate::support::{Lab, key, lab, pass, text};

fn own(lab: &Lab, name: &str, owner: Option<&Value>) -> Value {
    let owners: Vec<Value> = owner
        .map(|owner| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true })
        })
        .into_iter()
        .collect();
    let object = json!({ "metadata": { "name": name, "ownerReferences": owners } });
    lab.sandbox.create(&CONFIG_MAPS, object).expect("the object is valid")
}

fn names(lab: &Lab) -> Vec<String> {
    let all = lab.sandbox.list(&CONFIG_MAPS, Some("default"));
    all.iter().map(|object| text(object, "/metadata/name")).filter(|name| name != "kube-root-ca.crt").collect()
}

async fn delete(lab: &Lab, name: &str, policy: &str) -> Result<(), Status> {
    let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(lab.sandbox.client(), "default");
    let policy = match policy {
        "Foreground" => kube::api::DeleteParams::foreground(),
        "Orphan" => kube::api::DeleteParams::orphan(),
        _ => kube::api::DeleteParams::background(),
    };
    api.delete(name, &policy).await.map(drop).expect("the object is there");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_as_the_deletion_asks() {
    for (policy, expected) in [("Background", vec![]), ("Foreground", vec![]), ("Orphan", vec!["child", "grandchild"])]
    {
        let lab = lab(0);
        let owner = own(&lab, "owner", None);
        let child = own(&lab, "child", Some(&owner));
        own(&lab, "grandchild", Some(&child));
        delete(&lab, "owner", policy).await.expect("the owner is there");
        pass(1_000).await;
        assert_eq!(names(&lab), expected, "{policy}");
        if policy == "Orphan" {
            let child = lab.sandbox.get(&CONFIG_MAPS, &key("child")).unwrap_or_default();
            assert_eq!(child["metadata"]["ownerReferences"], Value::Null);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_removes_an_owner_after_its_dependents() {
    let lab = lab(0);
    let owner = own(&lab, "owner", None);
    let mut child = own(&lab, "child", Some(&owner));
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    lab.sandbox.update(&CONFIG_MAPS, child).expect("finalizers may be added");
    delete(&lab, "owner", "Foreground").await.expect("the owner is there");
    pass(60_000).await;
    assert_eq!(names(&lab), ["child", "owner"]);
    let release = json!({ "metadata": { "finalizers": null } });
    lab.sandbox.patch(&CONFIG_MAPS, &key("child"), &release).expect("finalizers may be removed");
    pass(1_000).await;
    assert_eq!(names(&lab), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_missing_owner_is_collected() {
    let lab = lab(0);
    let ghost = json!({ "metadata": { "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555" } });
    own(&lab, "child", Some(&ghost));
    pass(1_000).await;
    assert_eq!(names(&lab), Vec::<String>::new());
}
