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
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods, 2), None);
    assert_eq!(selectors.ambiguous(&key("other", "web"), &web, &pods, 2), None, "another namespace");
    assert_eq!(selectors.ambiguous(&key("shop", "b"), &tier, &pods[..1], 2), None, "it does not select this pod");
    let both = Some("[shop/b shop/web]".to_owned());
    assert_eq!(selectors.ambiguous(&key("shop", "b"), &tier, &pods, 2), both);
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods, 2), both);
    selectors.forget(&key("shop", "b"));
    assert_eq!(selectors.ambiguous(&key("shop", "web"), &web, &pods, 2), None, "the other is gone");
}

#[test]
fn selectors_without_a_label_of_one_value_and_those_that_change_are_found_too() {
    let selectors = Selectors::default();
    let selector = |text: &str| text.parse::<Selector>().unwrap();
    let pods = [pod(&json!({ "app": "web", "team": "a" }))];
    for (name, text) in [("a", "app in (web, api)"), ("b", "team=a,app=web"), ("c", "team=a,app=other")] {
        selectors.ambiguous(&key("shop", name), &selector(text), &pods, 2);
    }
    let of_a = |text: &str| selectors.ambiguous(&key("shop", "a"), &selector(text), &pods, 2);
    assert_eq!(of_a("app in (web, api)"), Some("[shop/a shop/b]".to_owned()));
    assert_eq!(of_a("!app"), None);
    assert_eq!(of_a("team=a"), Some("[shop/a shop/b]".to_owned()));
    selectors.forget(&key("shop", "b"));
    assert_eq!(of_a("team=a"), None);
}

#[test]
fn of_many_autoscalers_as_many_are_named_as_the_gate_allows() {
    let selectors = Selectors::default();
    let web: Selector = "app=web".parse().unwrap();
    let pods = [pod(&json!({ "app": "web" }))];
    for name in ["d", "c", "b"] {
        selectors.ambiguous(&key("shop", name), &web, &pods, 2);
    }
    let of_a = |most| selectors.ambiguous(&key("shop", "a"), &web, &pods, most);
    assert_eq!(of_a(2), Some("[shop/a shop/b]".to_owned()));
    assert_eq!(of_a(usize::MAX), Some("[shop/a shop/b shop/c shop/d]".to_owned()));
}

#[test]
fn an_autoscaler_that_was_never_synced_or_is_forgotten_twice_selects_nothing() {
    let selectors = Selectors::default();
    let web: Selector = "app=web".parse().unwrap();
    let pods = [pod(&json!({ "app": "web" }))];
    selectors.forget(&key("shop", "unknown"));
    assert_eq!(selectors.ambiguous(&key("shop", "a"), &web, &pods, 2), None);
    assert_eq!(selectors.ambiguous(&key("shop", "a"), &web, &[], 2), None, "there are no pods");
    selectors.ambiguous(&key("shop", "b"), &web, &pods, 2);
    selectors.forget(&key("shop", "b"));
    selectors.forget(&key("shop", "b"));
    assert_eq!(selectors.ambiguous(&key("shop", "a"), &web, &pods, 2), None);
}
