//! The identity under which an absent owner is looked up next, by the rows of upstream's `TestGetAlternateOwnerIdentity`.

use serde_json::{Value, json};

use super::fixtures::{Object, observe};
use crate::garbage_collector::graph::{Graph, Identity};

/// An owner as `VERSION KIND NAMESPACE NAME`; `-` for no namespace. Its uid is `parent`.
fn owner(text: &str) -> Identity {
    let [api_version, kind, namespace, name] = text.split(' ').collect::<Vec<_>>().try_into().expect("four words");
    Identity {
        kind: kind.into(),
        api_version: api_version.into(),
        namespace: (namespace != "-").then(|| namespace.into()),
        name: name.into(),
        uid: "parent".into(),
    }
}

/// A dependent in a namespace, with references that ignore the namespaces of these owners.
fn dependent(namespace: &str, name: &str, owners: &[&str]) -> Object {
    let references: Vec<Value> = owners
        .iter()
        .map(|text| {
            let Identity { kind, api_version, name, .. } = owner(text);
            let uid = if &*name == "unrelated" { "another" } else { "parent" };
            json!({ "apiVersion": *api_version, "kind": *kind, "name": *name, "uid": uid })
        })
        .collect();
    let mut object = json!({ "metadata": {
        "name": name, "uid": format!("{namespace}/{name}"), "resourceVersion": "1", "ownerReferences": references,
    } });
    if namespace != "-" {
        object["metadata"]["namespace"] = json!(namespace);
    }
    Object(object)
}

const NAMESPACED: &str = "v1 NSParent ns1 parent";
const CLUSTER: &str = "v1 ClusterParent - parent";
const OF_NAMESPACE: [&str; 5] =
    ["v1 Kind ns1 name", "v2 Kind ns1 name", "v3 Kind ns1 name", "v4 Kind ns1 name", "v5 Kind ns1 name"];
const OF_CLUSTER: [&str; 5] =
    ["v1 Kind - name", "v2 Kind - name", "v3 Kind - name", "v4 Kind - name", "v5 Kind - name"];

#[test]
fn the_next_identity_of_an_owner_that_is_absent_under_one() {
    for (name, dependents, absent, expected) in [
        (
            "namespaced alternate version",
            vec![("ns1", vec![NAMESPACED]), ("ns1", vec!["xx NSParent ns1 parent"])],
            NAMESPACED,
            Some("xx NSParent ns1 parent"),
        ),
        (
            "namespaced alternate kind",
            vec![("ns1", vec![NAMESPACED]), ("ns1", vec!["v1 Other ns1 parent"])],
            NAMESPACED,
            Some("v1 Other ns1 parent"),
        ),
        (
            "namespaced alternate namespace",
            vec![("ns1", vec![NAMESPACED]), ("ns2", vec![NAMESPACED])],
            NAMESPACED,
            Some("v1 NSParent ns2 parent"),
        ),
        (
            "namespaced alternate name",
            vec![("ns1", vec![NAMESPACED]), ("ns1", vec!["v1 NSParent ns1 other"])],
            NAMESPACED,
            Some("v1 NSParent ns1 other"),
        ),
        (
            "cluster alternate version, which may be namespaced",
            vec![("ns1", vec![CLUSTER]), ("ns1", vec!["xx ClusterParent - parent"])],
            CLUSTER,
            Some("xx ClusterParent ns1 parent"),
        ),
        (
            "cluster alternate kind, which may be namespaced",
            vec![("ns1", vec![CLUSTER]), ("ns1", vec!["v1 Other - parent"])],
            CLUSTER,
            Some("v1 Other ns1 parent"),
        ),
        ("cluster alternate namespace", vec![("ns1", vec![CLUSTER]), ("ns2", vec![CLUSTER])], CLUSTER, None),
        (
            "cluster alternate name",
            vec![("ns1", vec![CLUSTER]), ("ns1", vec!["v1 ClusterParent - other"])],
            CLUSTER,
            Some("v1 ClusterParent - other"),
        ),
        (
            "namespaced references, the absent one is the last",
            vec![("ns1", OF_NAMESPACE.to_vec())],
            OF_NAMESPACE[4],
            Some(OF_NAMESPACE[0]),
        ),
        (
            "namespaced references, the one after the absent one",
            vec![("ns1", OF_NAMESPACE.to_vec())],
            OF_NAMESPACE[3],
            Some(OF_NAMESPACE[4]),
        ),
        (
            "cluster references, the absent one is the last",
            vec![("-", OF_CLUSTER.to_vec())],
            OF_CLUSTER[4],
            Some(OF_CLUSTER[0]),
        ),
        (
            "cluster references, the one after the absent one",
            vec![("-", OF_CLUSTER.to_vec())],
            OF_CLUSTER[3],
            Some(OF_CLUSTER[4]),
        ),
        ("an unrelated reference", vec![("ns1", vec![CLUSTER, "v1 Parent ns1 unrelated"])], CLUSTER, None),
        ("the same reference twice", vec![("ns1", vec![CLUSTER, CLUSTER])], CLUSTER, None),
        (
            "another reference twice",
            vec![("-", vec![CLUSTER, "v1 Other - parent", "v1 Other - parent"])],
            CLUSTER,
            Some("v1 Other - parent"),
        ),
    ] {
        let mut graph = Graph::default();
        for (index, (namespace, owners)) in dependents.iter().enumerate() {
            observe(&mut graph, &dependent(namespace, &format!("child{index}"), owners));
        }
        assert_eq!(graph.alternative(&owner(absent)), expected.map(owner), "{name}");
    }
}
