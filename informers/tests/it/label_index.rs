//! The index of objects by their labels.

use std::cell::Cell;

use kcm_api::{Labels, PartialObjectMeta, Selector, View as _};
use kcm_informers::{Factory, FactoryOptions, Informer, LabelIndex, ListOptions};
use kcm_sandbox_apiserver::{CONFIG_MAPS, NAMESPACES, Sandbox};
use serde_json::{Value, json};

fn names(objects: Vec<std::sync::Arc<PartialObjectMeta>>) -> Vec<String> {
    objects.into_iter().map(|object| object.meta().key.name().to_owned()).collect()
}

async fn cached(sandbox: &Sandbox) -> (Factory, Informer<PartialObjectMeta>) {
    let factory = Factory::new(FactoryOptions::new(sandbox.client(), 1));
    let informer = factory.informer_for::<PartialObjectMeta>(CONFIG_MAPS, ListOptions::default());
    factory.start();
    informer.wait_synced().await;
    (factory, informer)
}

fn create(sandbox: &Sandbox, namespace: &str, name: &str, labels: &Value) {
    let object = json!({ "metadata": { "namespace": namespace, "name": name, "labels": labels } });
    sandbox.create(&CONFIG_MAPS, object).expect("the object is valid");
}

fn selector(text: &str) -> Selector {
    text.parse().expect("the selector is valid")
}

#[tokio::test(start_paused = true)]
async fn a_selector_finds_what_it_selects_and_is_compared_with_the_objects_of_one_label() {
    let sandbox = Sandbox::default();
    let namespace = json!({ "metadata": { "name": "other" } });
    sandbox.create(&NAMESPACES, namespace).expect("the namespace is valid");
    for number in 0..100 {
        create(&sandbox, "default", &format!("bulk-{number}"), &json!({ "app": "bulk", "tier": "back" }));
    }
    create(&sandbox, "default", "web", &json!({ "app": "web", "tier": "back", "pod-template-hash": "1" }));
    create(&sandbox, "other", "web", &json!({ "app": "web", "tier": "back" }));
    create(&sandbox, "default", "bare", &json!({}));
    let (_factory, informer) = cached(&sandbox).await;
    let index = LabelIndex::new(&informer);
    for (text, namespace, expected) in [
        ("app=web,tier=back", "default", &["web"][..]),
        ("app=web", "other", &["web"]),
        ("pod-template-hash=1", "default", &["web"]),
        ("!app", "default", &["bare"]),
        ("app=none", "default", &[]),
    ] {
        assert_eq!(names(index.selected(namespace, &selector(text))), expected, "{text}");
    }
    assert!(names(index.selected("other", &Selector::everything())).contains(&"web".to_owned()));
    assert!(index.selected("default", &Selector::nothing()).is_empty());

    let compared = Cell::new(0);
    let matches = |labels: &Labels| {
        compared.set(compared.get() + 1);
        labels.get("app") == Some("web")
    };
    let found = index.matching("default", [("tier", "back"), ("app", "web")].into_iter(), matches);
    assert_eq!((names(found).as_slice(), compared.get()), (&["web".to_owned()][..], 1));
}
