//! The store against a model: a sorted map, with indexes computed from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcm_api::{ObjectKey, PartialObjectMeta, View};
use proptest::prelude::*;

use super::*;

fn object(namespace: &str, name: &str, uid: &str, version: u64, app: &str) -> Arc<PartialObjectMeta> {
    let json = format!(
        r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{uid}","resourceVersion":"{version}",
            "labels":{{"app":"{app}"}}}}}}"#
    );
    Arc::new(PartialObjectMeta::decode(&json).unwrap())
}

fn app_of(object: &PartialObjectMeta) -> Option<String> {
    object.meta().labels.get("app").map(str::to_owned)
}

#[derive(Debug, Clone)]
enum Op {
    Put(Row),
    Remove(Row),
    Replace(Vec<Row>),
}

/// Namespace, name, uid, version and label of an object, from small ranges so that they meet.
type Row = (u8, u8, u8, u8, u8);

fn made((namespace, name, uid, version, app): Row) -> Arc<PartialObjectMeta> {
    object(
        &format!("ns{namespace}"),
        &format!("o{name}"),
        &format!("u{uid}"),
        u64::from(version) + 1,
        &format!("app{app}"),
    )
}

fn row() -> impl Strategy<Value = Row> {
    (0_u8..3, 0_u8..6, 0_u8..2, 0_u8..4, 0_u8..3)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => row().prop_map(Op::Put),
        2 => row().prop_map(Op::Remove),
        1 => prop::collection::vec(row(), 0..12).prop_map(Op::Replace),
    ]
}

type Model = BTreeMap<ObjectKey, Arc<PartialObjectMeta>>;

fn is_same(a: &PartialObjectMeta, b: &PartialObjectMeta) -> bool {
    is_same_version(a.meta(), b.meta())
}

/// Puts an object into the model. An object of the same version is kept.
fn put(model: &mut Model, object: Arc<PartialObjectMeta>) {
    let slot = model.entry(object.meta().key.clone()).or_insert_with(|| Arc::clone(&object));
    if !is_same(slot, &object) {
        *slot = object;
    }
}

/// Applies changes to a model as a subscriber would.
fn apply(model: &mut Model, changes: &[Change<PartialObjectMeta>]) {
    for change in changes {
        match change {
            Change::Added(new) => {
                assert!(model.insert(change.key().clone(), Arc::clone(new)).is_none(), "added twice");
            }
            Change::Updated { old, new } => {
                let before = model.insert(change.key().clone(), Arc::clone(new)).expect("updated what was not there");
                assert!(Arc::ptr_eq(&before, old), "old is what was there before");
                assert_eq!(old.meta().uid, new.meta().uid);
            }
            Change::Undecodable { .. } => panic!("no index refuses an object"),
            Change::Deleted { last, final_state_known } => {
                let before = model.remove(change.key()).expect("removed what was not there");
                assert!(Arc::ptr_eq(&before, last) && !final_state_known);
            }
        }
    }
}

fn same_objects(found: &[Arc<PartialObjectMeta>], expected: &[Arc<PartialObjectMeta>]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| Arc::ptr_eq(a, b))
}

proptest! {
    #[test]
    fn objects_indexes_and_changes_equal_the_model(ops in prop::collection::vec(op(), 0..60)) {
        let store = Arc::new(Store::new());
        let by_app = store.index("app", |object: &PartialObjectMeta| app_of(object));
        let mut model = Model::new();
        let mut subscriber = Model::new();
        for op in ops {
            match op {
                Op::Put(row) => {
                    let object = made(row);
                    put(&mut model, Arc::clone(&object));
                    let changes: Vec<_> = store.put(Arc::clone(&object)).unwrap().into_changes(object).collect();
                    apply(&mut subscriber, &changes);
                }
                Op::Remove(row) => {
                    let key = made(row).meta().key.clone();
                    let (removed, expected) = (store.remove(&key), model.remove(&key));
                    prop_assert_eq!(removed.is_some(), expected.is_some());
                    subscriber.remove(&key);
                }
                Op::Replace(rows) => {
                    let all: Vec<_> = rows.into_iter().map(made).collect();
                    let mut next = Model::new();
                    for object in &all {
                        next.insert(object.meta().key.clone(), Arc::clone(object));
                    }
                    for (key, object) in &mut next {
                        if let Some(old) = model.get(key).filter(|old| is_same(old, object)) {
                            *object = Arc::clone(old);
                        }
                    }
                    model = next;
                    apply(&mut subscriber, &store.replace(all));
                }
            }
            let expected: Vec<_> = model.values().cloned().collect();
            prop_assert!(same_objects(&store.list(), &expected), "list");
            prop_assert!(same_objects(&subscriber.values().cloned().collect::<Vec<_>>(), &expected), "subscriber");
            for app in ["app0", "app1", "app2"] {
                let expected: Vec<_> =
                    model.values().filter(|object| app_of(object).as_deref() == Some(app)).cloned().collect();
                prop_assert!(same_objects(&by_app.get(app), &expected), "index app");
                prop_assert_eq!(by_app.count(app), expected.len());
                let last = expected.last().map(|object| &object.meta().key);
                prop_assert_eq!(by_app.any(app, |object| Some(&object.meta().key) == last), last.is_some());
                prop_assert!(!by_app.any(app, |_| false));
            }
            for namespace in ["ns0", "ns1", "ns2"] {
                let expected: Vec<_> =
                    model.values().filter(|object| object.meta().key.namespace() == Some(namespace)).cloned().collect();
                prop_assert!(same_objects(&store.in_namespace(namespace), &expected), "index namespace");
            }
        }
    }
}

#[test]
fn replace_tells_the_set_difference_vanished_first() {
    let store = Store::new();
    for object in [object("a", "stays", "1", 1, ""), object("a", "goes", "2", 2, ""), object("a", "alters", "3", 3, "")]
    {
        store.put(object).unwrap();
    }
    store.put(object("a", "reborn", "4", 4, "")).unwrap();
    let all = vec![
        object("a", "new", "5", 9, ""),
        object("a", "reborn", "6", 8, ""),
        object("a", "stays", "1", 1, ""),
        object("a", "alters", "3", 7, ""),
    ];
    let changes: Vec<String> = store
        .replace(all)
        .iter()
        .map(|change| {
            let verb = match change {
                Change::Added(_) => "added",
                Change::Updated { .. } => "updated",
                Change::Undecodable { .. } => "undecodable",
                Change::Deleted { .. } => "removed",
            };
            format!("{verb} {}", change.key().name())
        })
        .collect();
    assert_eq!(changes, ["removed goes", "updated alters", "added new", "removed reborn", "added reborn"]);
}

#[test]
fn an_index_made_late_holds_what_is_there() {
    let store = Arc::new(Store::new());
    store.put(object("a", "x", "1", 1, "web")).unwrap();
    let index = store.index("app", |object: &PartialObjectMeta| app_of(object));
    assert_eq!(index.get("web").len(), 1);
}

fn by_app(store: &Arc<Store<PartialObjectMeta>>) -> Index<PartialObjectMeta, String> {
    store.index("app", app_of)
}

fn indexes(store: &Store<PartialObjectMeta>) -> usize {
    store.contents.read().indexes.iter().flatten().count()
}

#[test]
fn an_index_of_the_same_name_and_function_is_shared_and_dropped_with_its_last_handle() {
    let store = Arc::new(Store::new());
    store.put(object("a", "x", "1", 1, "web")).unwrap();
    let (one, other) = (by_app(&store), by_app(&store));
    assert_eq!(indexes(&store), 1);
    drop(one);
    assert_eq!((other.count("web"), indexes(&store)), (1, 1));
    drop(other);
    assert_eq!(indexes(&store), 0);
    store.put(object("a", "y", "2", 2, "web")).unwrap();
    assert_eq!(by_app(&store).count("web"), 2);
    assert_eq!(store.contents.read().indexes.len(), 1, "the slot is used again");
}

#[test]
fn indexes_of_one_name_with_other_functions_or_captured_values_are_others() {
    let store = Arc::new(Store::new());
    store.put(object("a", "x", "1", 1, "web")).unwrap();
    let by_text = by_app(&store);
    let by_number = store.index("app", |_: &PartialObjectMeta| [7_u8]);
    let by_name = store.index("app", |object: &PartialObjectMeta| [object.meta().key.name().to_owned()]);
    let fixed = |value: &'static str| store.index("app", move |_: &PartialObjectMeta| [value]);
    let (first, second) = (fixed("first"), fixed("second"));
    assert_eq!(indexes(&store), 5);
    assert_eq!((by_text.count("web"), by_number.count(&7), by_name.count("x")), (1, 1, 1));
    assert_eq!((first.count("first"), first.count("second"), second.count("second")), (1, 0, 1));
}

#[test]
fn an_object_for_which_an_index_function_panics_is_refused_and_changes_nothing() {
    let store = Arc::new(Store::new());
    let by_app = by_app(&store);
    let by_name = store.index("name", |object: &PartialObjectMeta| {
        assert_ne!(app_of(object).as_deref(), Some("bad"));
        [object.meta().key.name().to_owned()]
    });
    store.put(object("a", "x", "1", 1, "web")).unwrap();
    let panicked = store.put(object("a", "x", "1", 2, "bad")).unwrap_err();
    assert_eq!(panicked.index, "name");
    assert!(panicked.panic.contains("left != right"), "{panicked}");
    assert_eq!(store.get(&ObjectKey::namespaced("a", "x")).unwrap().meta().resource_version, 1.into());
    assert_eq!((by_app.count("web"), by_app.count("bad"), by_name.count("x")), (1, 0, 1));
    store.put(object("a", "x", "1", 3, "app")).unwrap();
    assert_eq!((by_app.count("web"), by_app.count("app"), by_name.count("x")), (0, 1, 1));
}

#[test]
fn an_index_function_that_panics_at_the_removal_leaves_no_ghost() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    let store = Arc::new(Store::new());
    let by_app = store.index("app", |object: &PartialObjectMeta| {
        assert!(!PANICS.load(Ordering::Relaxed));
        app_of(object)
    });
    for (name, app) in [("x", "web"), ("y", "web"), ("z", "api")] {
        store.put(object("a", name, name, 1, app)).unwrap();
    }
    PANICS.store(true, Ordering::Relaxed);
    for name in ["x", "z"] {
        assert!(store.remove(&ObjectKey::namespaced("a", name)).is_some());
    }
    let names: Vec<_> = by_app.get("web").iter().map(|object| object.meta().key.name().to_owned()).collect();
    assert_eq!((names, by_app.count("api"), store.len()), (vec!["y".to_owned()], 0, 1));
}

#[test]
fn a_new_index_whose_function_panics_tells_which_objects_it_lacks() {
    let store = Arc::new(Store::new());
    for (name, app) in [("x", "web"), ("y", "bad")] {
        store.put(object("a", name, name, 1, app)).unwrap();
    }
    let by_app = store.index("app", |object: &PartialObjectMeta| {
        assert_ne!(app_of(object).as_deref(), Some("bad"));
        app_of(object)
    });
    let unindexed = store.take_unindexed();
    let keys: Vec<_> = unindexed.iter().map(|(object, _)| object.meta().key.name()).collect();
    assert_eq!((keys, by_app.count("web")), (vec!["y"], 1));
    assert!(store.take_unindexed().is_empty());
}

#[test]
fn contents_that_are_built_aside_are_seen_only_when_they_are_exchanged() {
    let store = Arc::new(Store::new());
    let kept = by_app(&store);
    let dropped = store.index("dropped", |_: &PartialObjectMeta| [7_u8]);
    store.put(object("a", "old", "1", 1, "web")).unwrap();
    let mut replacement = store.replacement(2);
    for (name, app) in [("x", "web"), ("y", "api")] {
        replacement.put(&object("a", name, name, 2, app)).unwrap();
    }
    drop(dropped);
    // It takes the slot of the index that was dropped.
    let later = store.index("later", |object: &PartialObjectMeta| [object.meta().key.name().to_owned()]);
    assert_eq!((kept.count("web"), later.count("old"), store.len()), (1, 1, 1));
    let mut old = store.exchange(replacement);
    assert_eq!((kept.count("web"), kept.count("api"), store.len()), (1, 1, 2));
    assert_eq!((later.count("old"), later.count("x"), later.count("y")), (0, 1, 1));
    let mut steps = 0;
    while !old.drop_a_part() {
        steps += 1;
        assert!(steps < 10, "each step drops a part");
    }
    store.put(object("a", "z", "z", 3, "web")).unwrap();
    assert_eq!((kept.count("web"), later.count("z")), (2, 1));
}

#[test]
fn an_object_can_have_several_keys_in_an_index_and_lose_some() {
    let store = Arc::new(Store::new());
    let index = store.index("letters", |object: &PartialObjectMeta| {
        app_of(object).unwrap_or_default().chars().collect::<Vec<char>>()
    });
    store.put(object("a", "x", "1", 1, "aab")).unwrap();
    assert_eq!((index.count(&'a'), index.count(&'b')), (1, 1), "each key counts once");
    store.put(object("a", "x", "1", 2, "bc")).unwrap();
    assert_eq!((index.count(&'a'), index.count(&'b'), index.count(&'c')), (0, 1, 1));
    assert_eq!(index.get(&'b')[0].meta().resource_version, 2.into());
}

#[test]
fn what_shrinks_gives_memory_back() {
    let store = Arc::new(Store::new());
    let by_app = store.index("app", |object: &PartialObjectMeta| app_of(object));
    for number in 0..1000 {
        store.put(object("a", &format!("o{number}"), "1", number + 1, "web")).unwrap();
    }
    for number in 0..990 {
        store.remove(&ObjectKey::namespaced("a", format!("o{number}")));
    }
    assert_eq!(by_app.count("web"), 10);
    assert!(store.contents.read().objects.capacity() < 150);
}
