//! Tables: comparison, merge, and resulting ownership.

#![expect(clippy::needless_pass_by_value, reason = "objects are written where they are used")]

use serde_json::{Value, json};

use super::applied::Application;
use super::collect::fields_of;
use super::compare::Changes;
use super::conflict;
use super::fieldset::FieldSet;
use super::managers::{Manager, Managers, Operation};
use super::merge::merge;
use super::shape::Shape;

const DEPLOYMENT: (&str, &str) = ("apps", "Deployment");
const POD: (&str, &str) = ("", "Pod");
const CONFIG_MAP: (&str, &str) = ("", "ConfigMap");
const CUSTOM: (&str, &str) = ("example.com", "Widget");

fn shape((group, kind): (&str, &str)) -> Shape {
    Shape::of_version(group, "v1", kind)
}

fn spec(spec: Value) -> Value {
    json!({ "spec": spec })
}

fn metadata(metadata: Value) -> Value {
    json!({ "metadata": metadata })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
fn changes_are_found_down_to_the_field() {
    let cases = [
        (
            "a new label, and the map that holds it",
            POD,
            metadata(json!({})),
            metadata(json!({ "labels": { "a": "1" } })),
            json!({ "f:metadata": { "f:labels": { ".": {}, "f:a": {} } } }),
            json!({}),
        ),
        (
            "one of two labels",
            POD,
            metadata(json!({ "labels": { "a": "1", "b": "1" } })),
            metadata(json!({ "labels": { "a": "2" } })),
            json!({ "f:metadata": { "f:labels": { "f:a": {} } } }),
            json!({ "f:metadata": { "f:labels": { "f:b": {} } } }),
        ),
        (
            "fields without an owner",
            POD,
            metadata(json!({ "resourceVersion": "1" })),
            metadata(json!({ "resourceVersion": "2", "generation": 3, "name": "x" })),
            json!({}),
            json!({}),
        ),
        (
            "fields that are always there hold nothing new",
            POD,
            json!({}),
            spec(json!({ "containers": [{ "name": "c" }] })),
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { ".": {}, "f:name": {}, "f:resources": {} } } } }),
            json!({}),
        ),
        (
            "keys have defaults",
            POD,
            spec(json!({ "containers": [{ "name": "c", "ports": [] }] })),
            spec(json!({ "containers": [{ "name": "c", "ports": [{ "containerPort": 80 }] }] })),
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { "f:ports": {
                "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } } } } } }),
            json!({}),
        ),
        (
            "atomic maps as a whole",
            DEPLOYMENT,
            spec(json!({ "selector": { "matchLabels": { "a": "1" } } })),
            spec(json!({ "selector": { "matchLabels": { "a": "2" } } })),
            json!({ "f:spec": { "f:selector": {} } }),
            json!({}),
        ),
        (
            "atomic lists as a whole",
            POD,
            spec(json!({ "tolerations": [{ "key": "a" }] })),
            spec(json!({ "tolerations": [] })),
            json!({ "f:spec": { "f:tolerations": {} } }),
            json!({}),
        ),
        (
            "sets by item",
            POD,
            metadata(json!({ "finalizers": ["a/b"] })),
            metadata(json!({ "finalizers": ["a/c"] })),
            json!({ "f:metadata": { "f:finalizers": { "v:\"a/c\"": {} } } }),
            json!({ "f:metadata": { "f:finalizers": { "v:\"a/b\"": {} } } }),
        ),
        (
            "owners by uid, as a whole",
            POD,
            metadata(json!({ "ownerReferences": [] })),
            metadata(json!({ "ownerReferences": [{ "uid": "u", "name": "n" }] })),
            json!({ "f:metadata": { "f:ownerReferences": { "k:{\"uid\":\"u\"}": {} } } }),
            json!({}),
        ),
        (
            "the order of items is no change",
            POD,
            metadata(json!({ "finalizers": ["a/a", "a/b"] })),
            metadata(json!({ "finalizers": ["a/b", "a/a"] })),
            json!({}),
            json!({}),
        ),
        (
            "custom fields by entry",
            CUSTOM,
            spec(json!({ "a": { "b": 1 } })),
            spec(json!({ "a": { "b": 2 }, "list": [{ "x": 1 }] })),
            json!({ "f:spec": { "f:a": { "f:b": {} }, "f:list": {} } }),
            json!({}),
        ),
        (
            "a custom map that becomes a scalar",
            CUSTOM,
            spec(json!({ "a": { "b": 1 } })),
            spec(json!({ "a": 1 })),
            json!({ "f:spec": { "f:a": {} } }),
            json!({ "f:spec": { "f:a": { "f:b": {} } } }),
        ),
        (
            "items that share a name, as a whole",
            POD,
            spec(json!({ "containers": [{ "name": "c", "env": [{ "name": "e", "value": "1" }] }] })),
            spec(
                json!({ "containers": [{ "name": "c", "env": [{ "name": "e", "value": "1" }, { "name": "e", "value": "2" }] }] }),
            ),
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { "f:env": { "k:{\"name\":\"e\"}": {} } } } } }),
            json!({ "f:spec": { "f:containers": { "k:{\"name\":\"c\"}": { "f:env": { "k:{\"name\":\"e\"}": { ".": {}, "f:name": {}, "f:value": {} } } } } } }),
        ),
    ];
    for (name, kind, old, new, set, removed) in cases {
        let changes = Changes::between(shape(kind), &old, &new, &FieldSet::default());
        assert_eq!(changes.set.into_json(), set, "{name}: set");
        assert_eq!(changes.removed.into_json(), removed, "{name}: removed");
    }
}

#[test]
fn applied_fields_are_leaves_and_items() {
    let applied = json!({
        "metadata": { "labels": { "a": "1" }, "annotations": {}, "finalizers": ["a/b"] },
        "spec": {
            "replicas": null,
            "selector": { "matchLabels": { "a": "1" } },
            "template": { "spec": { "containers": [{ "name": "c", "args": ["x"], "securityContext": {} }] } },
        },
    });
    let fields = fields_of(shape(DEPLOYMENT), &applied).into_json();
    let expected = json!({
        "f:metadata": { "f:labels": { "f:a": {} }, "f:annotations": {}, "f:finalizers": { "v:\"a/b\"": {} } },
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": { "f:spec": { "f:containers": {
                "k:{\"name\":\"c\"}": { ".": {}, "f:name": {}, "f:args": {}, "f:securityContext": {} },
            } } },
        },
    });
    assert_eq!(fields, expected);
    let custom = fields_of(shape(CUSTOM), &spec(json!({ "a": { "b": [1] }, "c": {} }))).into_json();
    assert_eq!(custom, json!({ "f:spec": { ".": {}, "f:a": { ".": {}, "f:b": {} }, "f:c": {} } }));
}

#[test]
fn merged_lists_keep_the_live_order_unless_the_applied_one_says_otherwise() {
    let finalizers = |items: &[&str]| metadata(json!({ "finalizers": items }));
    let cases = [
        (&["a", "b", "c"][..], &["b"][..], &["a", "b", "c"][..]),
        (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
        (&["a", "b"], &["x", "b"], &["a", "x", "b"]),
        (&["a", "b"], &["b", "x"], &["a", "b", "x"]),
        (&["a", "b", "c", "d"], &["d", "a"], &["b", "c", "d", "a"]),
        (&[], &["x", "y"], &["x", "y"]),
        (&["a"], &[], &["a"]),
    ];
    for (live, applied, expected) in cases {
        let merged = merge(shape(POD), &finalizers(live), &finalizers(applied));
        assert_eq!(merged, finalizers(expected), "{live:?} + {applied:?}");
    }
}

/// Consecutive writes of one object, without defaults.
struct History {
    shape: Shape,
    object: Value,
    managers: Managers,
}

impl History {
    fn of(kind: (&str, &str)) -> Self {
        Self { shape: shape(kind), object: json!({}), managers: Managers::default() }
    }

    fn update(&mut self, manager: &str, object: Value) {
        let changes = Changes::between(self.shape, &self.object, &object, &FieldSet::default());
        let by = Manager::new(manager, Operation::Update, "v1", None);
        self.managers.update(&changes, by, "v1", Some("t".to_owned()));
        self.object = object;
    }

    fn try_apply(&mut self, manager: &str, object: &Value, force: bool) -> Result<(), String> {
        let by = Manager::new(manager, Operation::Apply, "v1", None);
        let nothing = FieldSet::default();
        let application = Application { shape: self.shape, version: "v1", ignored: &nothing, object, by: &by, force };
        let applied = application.to(&self.object, self.managers.clone());
        let (object, managers) = applied.map_err(|conflicts| conflict::refuse(&conflicts).message)?;
        self.object = object.unwrap_or_else(|| self.object.clone());
        self.managers = managers;
        Ok(())
    }

    fn apply(&mut self, manager: &str, object: Value) {
        self.try_apply(manager, &object, false).expect("there must be no conflict");
    }

    fn owned_by(&self, manager: &str) -> Value {
        let found = self.managers.0.iter().find(|(found, _)| found.name == manager);
        found.map_or(Value::Null, |(_, entry)| entry.fields.clone().into_json())
    }
}

fn data(data: Value) -> Value {
    json!({ "data": data })
}

#[test]
fn fields_that_are_no_longer_applied_are_pruned() {
    let mut history = History::of(CONFIG_MAP);
    history.apply("a", data(json!({ "x": "1", "y": "1" })));
    history.apply("a", data(json!({ "x": "1" })));
    assert_eq!(history.object, data(json!({ "x": "1" })));
    assert_eq!(history.owned_by("a"), json!({ "f:data": { "f:x": {} } }));
}

#[test]
fn fields_of_other_managers_stay() {
    let mut history = History::of(CONFIG_MAP);
    history.apply("a", data(json!({ "x": "1", "y": "1", "z": "1" })));
    history.apply("b", data(json!({ "x": "1" })));
    history.update("u", data(json!({ "x": "1", "y": "2", "z": "1" })));
    history.apply("a", data(json!({})));
    assert_eq!(history.object, data(json!({ "x": "1", "y": "2" })));
    assert_eq!(history.owned_by("b"), json!({ "f:data": { "f:x": {} } }));
    assert_eq!(history.owned_by("u"), json!({ "f:data": { "f:y": {} } }));
}

#[test]
fn an_item_is_pruned_unless_another_manager_owns_one_of_its_fields() {
    let with = |containers: Value| spec(json!({ "containers": containers }));
    let both = json!([{ "name": "a", "image": "i" }, { "name": "b", "image": "i" }]);
    let mut history = History::of(POD);
    history.apply("a", with(both.clone()));
    history.apply("a", with(json!([{ "name": "a", "image": "i" }])));
    assert_eq!(history.object, with(json!([{ "name": "a", "image": "i" }])));

    let mut history = History::of(POD);
    history.apply("a", with(both));
    history.apply("x", with(json!([{ "name": "b", "tty": true }])));
    history.apply("a", with(json!([{ "name": "a", "image": "i" }])));
    assert_eq!(history.object, with(json!([{ "name": "a", "image": "i" }, { "name": "b", "tty": true }])));
}

#[test]
fn fields_of_others_are_not_taken_without_force() {
    let mut history = History::of(CONFIG_MAP);
    history.update("u", data(json!({ "x": "1" })));
    history.apply("b", data(json!({ "y": "1" })));
    let one = history.try_apply("a", &data(json!({ "x": "2" })), false);
    assert_eq!(one, Err("Apply failed with 1 conflict: conflict with \"u\" using v1: .data.x".to_owned()));
    let two = history.try_apply("a", &data(json!({ "x": "2", "y": "2" })), false);
    let message =
        "Apply failed with 2 conflicts: conflicts with \"b\":\n- .data.y\nconflicts with \"u\" using v1:\n- .data.x";
    assert_eq!(two, Err(message.to_owned()));
    assert_eq!(history.try_apply("a", &data(json!({ "x": "2", "y": "1" })), true), Ok(()));
    assert_eq!(history.owned_by("u"), json!({ "f:data": {} }));
    assert_eq!(history.owned_by("b"), json!({ "f:data": { "f:y": {} } }), "the same value is owned together");
}

#[test]
fn an_update_takes_what_it_changes_and_gives_up_what_it_removes() {
    let mut history = History::of(CONFIG_MAP);
    history.update("u", data(json!({ "x": "1", "y": "1" })));
    history.update("v", data(json!({ "x": "2", "z": "1" })));
    assert_eq!(history.owned_by("u"), json!({ "f:data": {} }));
    assert_eq!(history.owned_by("v"), json!({ "f:data": { "f:x": {}, "f:z": {} } }));
}

#[test]
fn atomic_values_have_one_owner_for_all_they_hold() {
    let select = |label: &str| spec(json!({ "selector": { "matchLabels": { label: "1" } } }));
    let mut history = History::of(DEPLOYMENT);
    history.apply("a", select("x"));
    let conflict = history.try_apply("b", &select("y"), false);
    assert_eq!(conflict, Err("Apply failed with 1 conflict: conflict with \"a\": .spec.selector".to_owned()));
    assert_eq!(history.try_apply("b", &select("y"), true), Ok(()));
    assert_eq!(history.object, select("y"));
    assert_eq!(history.owned_by("a"), Value::Null);
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let mut history = History::of(DEPLOYMENT);
    let object = spec(json!({ "replicas": 1, "selector": { "matchLabels": { "a": "1" } } }));
    history.apply("a", object.clone());
    let before = history.managers.clone();
    history.apply("a", object.clone());
    assert_eq!((history.object, history.managers), (object, before));
}

#[test]
fn the_oldest_of_too_many_updaters_are_taken_together() {
    let mut history = History::of(CONFIG_MAP);
    let mut object = json!({ "data": {} });
    for at in 0..12 {
        object["data"][format!("k{at:02}")] = "1".into();
        history.update(&format!("u{at:02}"), object.clone());
    }
    let names: Vec<&str> = history.managers.0.keys().map(|manager| manager.name.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names.first(), Some(&"ancient-changes"));
    assert_eq!(
        history.owned_by("ancient-changes"),
        json!({ "f:data": { ".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {} } })
    );
}

#[test]
fn managed_fields_are_written_as_they_are_read() {
    let entries = json!([
        { "manager": "b", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:data": {} } },
        { "manager": "a", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
          "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { ".": {}, "f:x": {} } } },
        { "manager": "a", "operation": "Update", "apiVersion": "v1", "time": "2025-01-01T00:00:00Z", "subresource": "status",
          "fieldsType": "FieldsV1", "fieldsV1": { "f:status": { "f:phase": {} } } },
    ]);
    let read = Managers::from_json(entries.as_array().expect("a list")).expect("the entries must be well-formed");
    assert_eq!(read.into_json(), entries);
    for broken in
        [json!({ "operation": "Apply" }), json!({ "operation": "Patch", "apiVersion": "v1", "fieldsType": "FieldsV1" })]
    {
        assert_eq!(Managers::from_json(&[broken]), None);
    }
}

#[test]
fn objects_that_do_not_fit_their_type_are_not_applied() {
    let template = |pod: Value| spec(json!({ "template": { "spec": pod } }));
    let cases = [
        (spec(json!({ "foo": 1 })), ".spec.foo: field not declared in schema"),
        (spec(json!({ "minReadySeconds": "x" })), ".spec.minReadySeconds: expected numeric (int or float), got string"),
        (spec(json!({ "paused": "x" })), ".spec.paused: expected boolean, got &{x}"),
        (spec(json!({ "paused": { "a": 1 } })), ".spec.paused: expected boolean, got &{map[a:1]}"),
        (spec(json!({ "template": [1] })), ".spec.template: expected map, got &{[1]}"),
        (
            template(json!({ "schedulerName": 1 })),
            ".spec.template.spec.schedulerName: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            template(json!({ "schedulerName": { "a": "b" } })),
            ".spec.template.spec.schedulerName: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":\"b\"}}",
        ),
        (template(json!({ "containers": {} })), ".spec.template.spec.containers: expected list, got &{map[]}"),
        (
            template(json!({ "containers": [1] })),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        (
            template(json!({ "containers": [{ "name": "c" }, { "name": "c" }] })),
            ".spec.template.spec.containers: duplicate entries for key [name=\"c\"]",
        ),
        (
            template(json!({ "containers": [{ "name": "a", "args": [1], "foo": 2 }] })),
            "errors:\n  .spec.template.spec.containers[name=\"a\"].args[0]: expected string, got &value.valueUnstructured{Value:1}\n  .spec.template.spec.containers[name=\"a\"].foo: field not declared in schema",
        ),
        (
            metadata(json!({ "finalizers": [{}] })),
            ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
        ),
        (metadata(json!(1)), ".metadata: expected map, got &{1}"),
    ];
    for (object, complaint) in cases {
        assert_eq!(super::check::complaints(shape(DEPLOYMENT), &object).as_deref(), Some(complaint));
    }
}
