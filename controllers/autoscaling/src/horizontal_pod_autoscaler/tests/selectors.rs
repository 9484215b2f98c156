//! Pods that several autoscalers select.

use std::sync::Arc;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{ObjectKey, Selector, View as _};
use serde_json::json;

use crate::horizontal_pod_autoscaler::selectors::Selectors;

fn pod(labels: &serde_json::Value) -> Arc<Pod> {
    let object = json!({ "metadata": { "namespace": "shop", "name": "p", "labels": labels } });
    Arc::new(Pod::decode(&object.to_string()).expect("it is a pod"))
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, name)
}

#[test]
fn pods_are_ambiguous_while_several_autoscalers_of_their_namespace_select_one_of_them() {
    let selectors = Selectors::default();
    let (web, tier): (Selector, Selector) = ("app=web".parse().unwrap(), "tier=front".parse().unwrap());
    let pods = [pod(&json!({ "app": "web" })), pod(&json!({ "app": "web", "tier": "front" }))];
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods), None);
    assert_eq!(selectors.ambiguous(&key("other", "web"), &web, &pods), None, "another namespace");
    assert_eq!(selectors.ambiguous(&key("shop", "b"), &tier, &pods[..1]), None, "it does not select this pod");
    let both = Some("[{b shop} {web shop}]".to_owned());
    assert_eq!(selectors.ambiguous(&key("shop", "b"), &tier, &pods), both);
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods), both);
    selectors.forget(&key("shop", "b"));
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods), None, "the other is gone");
}

#[test]
fn selectors_without_a_label_of_one_value_and_those_that_change_are_found_too() {
    let selectors = Selectors::default();
    let selector = |text: &str| text.parse::<Selector>().unwrap();
    let pods = [pod(&json!({ "app": "web", "team": "a" }))];
    for (name, text) in [("a", "app in (web, api)"), ("b", "team=a,app=web"), ("c", "team=a,app=other")] {
        selectors.ambiguous(&key("shop", name), &selector(text), &pods);
    }
    let of_a = |text: &str| selectors.ambiguous(&key("shop", "a"), &selector(text), &pods);
    assert_eq!(of_a("app in (web, api)"), Some("[{a shop} {b shop}]".to_owned()));
    assert_eq!(of_a("!app"), None);
    assert_eq!(of_a("team=a"), Some("[{a shop} {b shop}]".to_owned()));
    selectors.forget(&key("shop", "b"));
    assert_eq!(of_a("team=a"), None);
}
