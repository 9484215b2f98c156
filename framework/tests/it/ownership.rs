//! Ownership by controller reference: whose an object is, whom a change enqueues, and what an owner claims.

use std::sync::Arc;

use kcm_api::views::{Pod, ReplicaSet};
use kcm_api::{KnownView as _, Meta, ObjectKey, PartialObjectMeta, Resource, Selector, View};
use kcm_framework::ownership::{Claim, Claims, LeaveReason, Owner, OwnerLister, Owners, controller_key};
use kcm_informers::Change;
use serde_json::{Value, json};

const REPLICATION_CONTROLLERS: Resource =
    Resource::namespaced("", "v1", "replicationcontrollers", "ReplicationController");
const CLUSTER_SETS: Resource = Resource::cluster_scoped("example.com", "v1", "clustersets", "ClusterSet");

/// An object of namespace `shop` and uid `uid-of-NAME`; the pods of `web` are labelled `app=web`.
#[derive(Clone)]
struct Object(Value);

impl Object {
    fn named(name: &str) -> Self {
        Self(json!({ "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-of-{name}") } }))
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.0["metadata"][field] = value;
        self
    }

    fn labelled(self, app: &str) -> Self {
        self.with("labels", json!({ "app": app }))
    }

    fn owner(self, kind: &str, name: &str, uid: &str) -> Self {
        let reference = json!({ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true });
        self.with("ownerReferences", json!([reference]))
    }

    fn owned_by(self, name: &str) -> Self {
        self.owner("ReplicaSet", name, &format!("uid-of-{name}"))
    }

    fn terminating(self) -> Self {
        self.with("deletionTimestamp", json!("2026-01-02T12:00:00Z"))
    }

    fn view<V: View>(&self) -> Arc<V> {
        Arc::new(V::decode(&self.0.to_string()).expect("the object must decode"))
    }

    fn meta(&self) -> Meta {
        self.view::<PartialObjectMeta>().metadata.clone()
    }
}

fn set(name: &str) -> Object {
    Object::named(name)
}

/// A pod that `web` owns and selects.
fn pod() -> Object {
    orphan().owned_by("web")
}

fn orphan() -> Object {
    Object::named("a").labelled("web")
}

fn selector(text: &str) -> Selector {
    text.parse().expect("the selector must be valid")
}

#[test]
fn each_object_is_kept_adopted_released_or_left_for_a_reason() {
    let merely_owned = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-of-web" }]);
    let (by_app, everything) = (selector("app=web"), selector(""));
    let leave = Claim::Leave;
    for (name, owner, selector, object, claim) in [
        ("its own", set("web"), &by_app, pod(), Claim::Keep),
        ("its own while the owner is terminating", set("web").terminating(), &by_app, pod(), Claim::Keep),
        ("its own, relabelled", set("web"), &by_app, pod().labelled("other"), Claim::Release),
        (
            "its own, relabelled, while the owner is terminating",
            set("web").terminating(),
            &by_app,
            pod().labelled("other"),
            leave(LeaveReason::OwnerTerminating),
        ),
        ("an orphan", set("web"), &by_app, orphan(), Claim::Adopt),
        (
            "owned by it, but not controlled",
            set("web"),
            &by_app,
            orphan().with("ownerReferences", merely_owned),
            Claim::Adopt,
        ),
        (
            "an orphan that is not selected",
            set("web"),
            &by_app,
            orphan().labelled("other"),
            leave(LeaveReason::NotSelected),
        ),
        (
            "an orphan while the owner is terminating",
            set("web").terminating(),
            &by_app,
            orphan(),
            leave(LeaveReason::OwnerTerminating),
        ),
        ("a terminating orphan", set("web"), &by_app, orphan().terminating(), leave(LeaveReason::Terminating)),
        (
            "controlled by another owner, though selected",
            set("web"),
            &by_app,
            pod().owned_by("twin"),
            leave(LeaveReason::ControlledByAnother),
        ),
        (
            "of an owner that was recreated under the same name",
            set("web"),
            &by_app,
            pod().owner("ReplicaSet", "web", "uid-of-before"),
            leave(LeaveReason::ControlledByAnother),
        ),
        (
            "of another kind with the same uid",
            set("web"),
            &by_app,
            pod().owner("Job", "web", "uid-of-web"),
            leave(LeaveReason::ControlledByAnother),
        ),
        (
            "of another name with the same uid",
            set("web"),
            &by_app,
            pod().owner("ReplicaSet", "other", "uid-of-web"),
            leave(LeaveReason::ControlledByAnother),
        ),
        (
            "of another namespace",
            set("web"),
            &by_app,
            pod().with("namespace", json!("elsewhere")),
            leave(LeaveReason::ControlledByAnother),
        ),
        (
            "an orphan, of a selector that selects everything",
            set("web"),
            &everything,
            orphan().labelled("other"),
            Claim::Adopt,
        ),
    ] {
        let owner = owner.view::<ReplicaSet>();
        assert_eq!(Claim::of(Owner::of(&*owner), selector, &object.meta()), claim, "{name}");
    }
}

#[test]
fn claims_are_sorted_by_name_as_requests_are_sent_in_that_order() {
    let owner = set("web").view::<ReplicaSet>();
    let object = |name: &str| orphan().with("name", json!(name)).view::<Pod>();
    let claims = Claims::of(Owner::of(&*owner), &selector("app=web"), &[object("z"), object("a"), object("m")]);
    let names: Vec<_> = claims.adopt.iter().map(|pod| pod.metadata.key.name().to_owned()).collect();
    assert_eq!(names, ["a", "m", "z"]);
}

#[test]
fn an_owner_is_of_any_resource_and_owns_across_namespaces_if_it_has_none() {
    let web = set("web").meta();
    let controller = Owner { resource: &REPLICATION_CONTROLLERS, meta: &web };
    assert!(controller.owns(&pod().owner("ReplicationController", "web", "uid-of-web").meta()));
    assert!(!controller.owns(&pod().meta()), "of another kind");
    let reference = serde_json::to_value(controller.reference()).expect("references serialize");
    assert_eq!(reference["apiVersion"], "v1");
    let everywhere = Object::named("all").with("namespace", json!(null)).meta();
    let cluster_set = Owner { resource: &CLUSTER_SETS, meta: &everywhere };
    let dependent = pod().owner("ClusterSet", "all", "uid-of-all");
    assert!(cluster_set.owns(&dependent.meta()));
    assert!(cluster_set.owns(&dependent.clone().with("namespace", json!("elsewhere")).meta()));
    assert_eq!(controller_key(&CLUSTER_SETS, &dependent.meta()), Some(ObjectKey::cluster_scoped("all")));
    assert_eq!(controller_key(&ReplicaSet::RESOURCE, &dependent.meta()), None);
    assert_eq!(controller_key(&ReplicaSet::RESOURCE, &pod().meta()), Some(ObjectKey::namespaced("shop", "web")));
}

/// Owners of any kind: here the label `app` of an owner is its selector.
fn owners() -> Owners<PartialObjectMeta, Vec<Arc<PartialObjectMeta>>> {
    let all = [
        set("web"),
        set("twin"),
        set("other"),
        set("everything"),
        set("nothing"),
        set("web").with("namespace", json!("elsewhere")),
    ];
    Owners::of(ReplicaSet::RESOURCE, all.iter().map(Object::view).collect(), |owner| {
        static SELECTORS: std::sync::LazyLock<[Selector; 3]> =
            std::sync::LazyLock::new(|| ["app=web", "app=other", ""].map(selector));
        let [web, other, everything] = &*SELECTORS;
        match owner.metadata.key.name() {
            "web" | "twin" => Some(web),
            "other" => Some(other),
            "everything" => Some(everything),
            _nothing => None,
        }
    })
}

fn updated(old: &Object, new: &Object) -> Change<Pod> {
    Change::Updated { old: old.view(), new: new.view() }
}

#[test]
fn a_change_enqueues_the_controller_before_and_after_and_an_orphan_every_owner_that_selects_it() {
    let added = |object: Object| Change::Added(object.view::<Pod>());
    let deleted = |object: Object| Change::Deleted { last: object.view::<Pod>(), final_state_known: true };
    let rows: [(&str, Change<Pod>, &[&str]); 22] = [
        ("added, owned", added(pod()), &["web"]),
        ("added, owned, not selected", added(pod().labelled("nothing")), &["web"]),
        ("added, owned, terminating", added(pod().terminating()), &["web"]),
        ("added, orphan: every match", added(orphan()), &["web", "twin"]),
        ("added, orphan without a match", added(orphan().labelled("nothing")), &[]),
        ("added, orphan without labels", added(orphan().with("labels", json!({}))), &[]),
        ("added, terminating orphan", added(orphan().terminating()), &[]),
        ("added, of another kind", added(pod().owner("Job", "web", "uid-of-web")), &[]),
        ("added, of a recreated owner", added(pod().owner("ReplicaSet", "web", "before")), &[]),
        ("added, of a missing owner", added(pod().owned_by("missing")), &[]),
        ("added, owner in another namespace", added(pod().with("namespace", json!("nowhere"))), &[]),
        ("updated, owned", updated(&pod(), &pod()), &["web"]),
        ("updated, owned and relabelled", updated(&pod(), &pod().labelled("other")), &["web"]),
        ("updated, of another owner", updated(&pod(), &pod().owned_by("other")), &["web", "other"]),
        ("updated, released", updated(&pod(), &orphan()), &["web", "web", "twin"]),
        ("updated, released and relabelled", updated(&pod(), &orphan().labelled("other")), &["web", "other"]),
        ("updated, adopted", updated(&orphan(), &pod().owned_by("twin")), &["twin"]),
        ("updated, orphan", updated(&orphan(), &orphan()), &[]),
        ("updated, orphan relabelled", updated(&orphan(), &orphan().labelled("other")), &["other"]),
        ("updated, terminating orphan relabelled", updated(&orphan(), &orphan().terminating().labelled("other")), &[]),
        ("deleted, owned", deleted(pod()), &["web"]),
        ("deleted, orphan", deleted(orphan()), &[]),
    ];
    for (name, change, expected) in rows {
        let keys = owners().keys(&change);
        assert!(keys.iter().all(|key| key.namespace() == Some("shop")), "{name}");
        assert_eq!(keys.iter().map(ObjectKey::name).collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn a_vector_lists_owners_as_a_cache_does() {
    let owners = vec![set("web").view::<ReplicaSet>(), set("web").with("namespace", json!("b")).view()];
    let found = OwnerLister::get(&owners, &ObjectKey::namespaced("b", "web")).expect("it must be found");
    assert_eq!(found.metadata.key.namespace(), Some("b"));
    assert_eq!(owners.in_namespace("shop").len(), 1);
}
