//! A watch as a cursor into the window of past events. Pure; `stream` drives it.
//!
//! A watch holds no events of its own beyond a small batch. A client that reads too slowly falls behind the window
//! and its watch is closed; it never blocks writes.
//!
//! # Upstream
//! `apiserver/pkg/storage/cacher`, `apiserver/pkg/endpoints/handlers/watch.go`

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_api::Resource;
use serde_json::{Value, json};

use crate::event_view;
use crate::json;
use crate::kinds::{Behaviour, EVENTS, Kind};
use crate::request::{Form, ListOptions, Target};
use crate::selection::{Selection, namespace_of};
use crate::server::Server;
use crate::status::Status;
use crate::store::storage::{Event, EventKind, Store, TooOld};
use crate::store::stored::Stored;
use crate::table::Table;

/// Number of events that are read from the window at a time.
const BATCH: usize = 64;

/// An event of a watch stream.
#[derive(Debug, Clone)]
pub(crate) enum WatchEvent {
    Added(Arc<Stored>),
    Modified(Arc<Stored>),
    Deleted(Arc<Stored>),
    Bookmark { version: u64, ends_initial_events: bool },
    Error(Box<Status>),
}

/// The watch of one client on one resource.
#[derive(Debug)]
pub(crate) struct Watch {
    kind: Arc<Kind>,
    selection: Selection,
    form: Form,
    /// A table with column definitions was sent; later ones omit them.
    columns_defined: bool,
    /// All events up to this version are processed.
    cursor: u64,
    pub(crate) bookmarks: bool,
    initial: VecDeque<Arc<Stored>>,
    /// The bookmark after the initial events, if requested.
    initial_end: Option<u64>,
    ready: VecDeque<(Duration, WatchEvent)>,
    refused: Option<Status>,
}

impl Watch {
    /// Opens a watch.
    ///
    /// A version older than the window yields a stream of one error, as upstream.
    pub(crate) fn open(
        server: &Server,
        target: &Target,
        options: &ListOptions,
        form: Form,
        stale: Option<u64>,
    ) -> Result<Self, Status> {
        let kind = server.kind(&target.resource)?.clone();
        let namespace = namespace_of(&kind.resource, target.namespace.as_deref());
        let mut selection = Selection::parse(&kind, namespace, options.labels.as_deref(), options.fields.as_deref())?;
        if let Some(name) = &target.name {
            selection.require_name(name);
        }
        let current = server.store.version();
        let mut watch = Self {
            kind,
            selection,
            form,
            columns_defined: false,
            cursor: current,
            bookmarks: options.bookmarks,
            initial: VecDeque::new(),
            initial_end: None,
            ready: VecDeque::new(),
            refused: None,
        };
        match (options.initial_events, options.version) {
            (Some(true), version) if version.is_some_and(|version| version > current) => {
                let requested = version.unwrap_or_default();
                watch.refused = Some(Status::version_too_large(requested, current));
            }
            (Some(true), _) => {
                watch.start_with_state(server, options, stale)?;
                watch.initial_end = options.bookmarks.then_some(watch.cursor);
            }
            (None, None | Some(0)) => watch.start_with_state(server, options, stale)?,
            (Some(false), None | Some(0)) => {}
            (_, Some(version)) => {
                watch.cursor = version;
                if let Err(too_old) = server.store.events_after(version).map(drop) {
                    watch.refused = Some(Status::expired(too_old.to_string()));
                }
            }
        }
        Ok(watch)
    }

    fn start_with_state(&mut self, server: &Server, options: &ListOptions, stale: Option<u64>) -> Result<(), Status> {
        self.cursor = server.stale_version(options, stale);
        let resource = self.resource();
        let objects = server
            .store
            .list_at(resource, self.selection.namespace.as_deref(), self.cursor)
            .map_err(|too_old| Status::expired(too_old.to_string()))?;
        self.initial = objects
            .into_iter()
            .filter(|(key, object)| self.selection.matches(key, object))
            .map(|(_, object)| object)
            .collect();
        Ok(())
    }

    /// Returns the resource under which its events are stored.
    pub(crate) fn resource(&self) -> &Resource {
        event_view::stored_as(&self.kind.resource)
    }

    /// Returns the error, if the stream consists of one.
    pub(crate) fn take_refusal(&mut self) -> Option<Status> {
        self.refused.take()
    }

    /// Returns the next initial event, then the bookmark that ends them.
    pub(crate) fn next_initial(&mut self) -> Option<WatchEvent> {
        if let Some(object) = self.initial.pop_front() {
            return Some(WatchEvent::Added(object));
        }
        let version = self.initial_end.take()?;
        Some(WatchEvent::Bookmark { version, ends_initial_events: true })
    }

    /// Reads the next events from the window if the batch is empty.
    ///
    /// Skips the events whose versions are in `hidden`.
    pub(crate) fn pull(&mut self, store: &Store, hidden: impl Fn(u64) -> bool) -> Result<(), TooOld> {
        // A watch may start at a future version.
        if !self.ready.is_empty() || self.cursor >= store.version() {
            return Ok(());
        }
        // A watch of an unchanged resource may sleep for longer than the window lasts.
        for event in store.events_of(event_view::stored_as(&self.kind.resource), self.cursor)? {
            self.cursor = event.version;
            if !hidden(event.version) {
                self.ready.extend(self.seen(event).map(|seen| (event.at, seen)));
            }
            if self.ready.len() >= BATCH {
                return Ok(());
            }
        }
        self.cursor = store.version();
        Ok(())
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.ready.front().map(|(at, _)| *at)
    }

    pub(crate) fn next(&mut self) -> Option<WatchEvent> {
        self.ready.pop_front().map(|(_, event)| event)
    }

    /// Returns a bookmark for a watch that has processed all events.
    pub(crate) fn bookmark(&self) -> WatchEvent {
        WatchEvent::Bookmark { version: self.cursor, ends_initial_events: false }
    }

    /// Converts an event for the selection: an object that enters it is added, an object that leaves it is deleted.
    fn seen(&self, event: &Event) -> Option<WatchEvent> {
        let matches = |object: &Arc<Stored>| self.selection.matches(&event.key, object);
        let before = event.previous.as_ref().filter(|previous| matches(previous));
        if event.kind == EventKind::Deleted {
            return before.map(|_| WatchEvent::Deleted(event.object.clone()));
        }
        match (before, matches(&event.object)) {
            (None, true) => Some(WatchEvent::Added(event.object.clone())),
            (Some(_), true) => Some(WatchEvent::Modified(event.object.clone())),
            (Some(previous), false) => {
                // The old content with the version of the change, as upstream.
                let last = Arc::new(previous.under_version(event.version));
                Some(WatchEvent::Deleted(Arc::new(Stored::new(&last))))
            }
            (None, false) => None,
        }
    }

    /// Encodes an event as one line of the stream.
    ///
    /// `now` is the reference for ages.
    pub(crate) fn encode(&mut self, event: &WatchEvent, now: Timestamp) -> Vec<u8> {
        let (name, object) = match event {
            WatchEvent::Added(object) => ("ADDED", self.formed(object, now)),
            WatchEvent::Modified(object) => ("MODIFIED", self.formed(object, now)),
            WatchEvent::Deleted(object) => ("DELETED", self.formed(object, now)),
            WatchEvent::Bookmark { version, ends_initial_events } => {
                let bookmark = Stored::new(&Arc::new(self.bookmark_json(*version, *ends_initial_events)));
                ("BOOKMARK", Cow::Owned(self.formed(&bookmark, now).into_owned()))
            }
            WatchEvent::Error(status) => ("ERROR", Cow::Owned(status.to_json().to_string())),
        };
        format!("{{\"type\":\"{name}\",\"object\":{object}}}\n").into_bytes()
    }

    fn formed<'a>(&mut self, object: &'a Stored, now: Timestamp) -> Cow<'a, str> {
        match self.form {
            Form::Whole if event_view::is_view(&self.kind.resource) => {
                let event = event_view::outward(&self.kind.resource, Value::clone(&object.value()));
                Cow::Owned(Stored::new(&Arc::new(event)).text().to_owned())
            }
            Form::Whole => Cow::Borrowed(object.text()),
            Form::MetadataOnly => Cow::Owned(object.metadata_only()),
            Form::Table { include } => {
                let table = Table::of_object(&self.kind, None, object, include, now);
                let table = if self.columns_defined { table.without_definitions() } else { table };
                self.columns_defined = true;
                Cow::Owned(serde_json::to_string(&table).expect("a table of JSON is JSON"))
            }
        }
    }

    fn bookmark_json(&self, version: u64, ends_initial_events: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if ends_initial_events {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let mut bookmark = json!({
            "kind": self.kind.resource.kind,
            "apiVersion": self.kind.resource.api_version(),
            "metadata": metadata,
        });
        if let Some(fields) = zero_value(&self.kind).as_object() {
            json::map_of(&mut bookmark).extend(fields.clone());
        }
        bookmark
    }
}

/// The JSON of an empty typed object: required fields are null.
fn zero_value(kind: &Kind) -> Value {
    let template = json!({ "metadata": {}, "spec": { "containers": null } });
    match kind.behaviour {
        Behaviour::Pod => json!({ "spec": { "containers": null }, "status": {} }),
        Behaviour::ReplicaSet => {
            json!({ "spec": { "replicas": 0, "selector": null, "template": template }, "status": { "replicas": 0 } })
        }
        Behaviour::Deployment => {
            let spec = json!({ "replicas": 0, "selector": null, "template": template, "strategy": {} });
            json!({ "spec": spec, "status": {} })
        }
        Behaviour::Plain if *event_view::stored_as(&kind.resource) == EVENTS => json!({
            "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
            "reportingComponent": "", "reportingInstance": "",
        }),
        Behaviour::Namespace | Behaviour::Plain if kind.status => json!({ "spec": {}, "status": {} }),
        Behaviour::Namespace | Behaviour::Plain | Behaviour::Review | Behaviour::Custom => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kcm_api::ObjectKey;
    use proptest::prelude::*;

    use super::*;
    use crate::kinds::CONFIG_MAPS;
    use crate::request::Now;
    use crate::request::Verb;

    /// The cache of a client: versions by key.
    type Known = BTreeMap<(String, String), String>;

    fn key_of(object: &Value) -> (String, String) {
        let namespace = json::text(object, &["metadata", "namespace"]).unwrap_or_default();
        (namespace.to_owned(), json::name(object).to_owned())
    }

    fn note(known: &mut Known, object: &Value) -> Option<String> {
        known.insert(key_of(object), json::version(object).to_owned())
    }

    #[derive(Debug, Clone)]
    enum Write {
        Put { namespace: u8, name: u8, label: u8 },
        Remove { namespace: u8, name: u8 },
        OtherKind,
        Compact,
    }

    fn writes() -> impl Strategy<Value = Write> {
        prop_oneof![
            6 => (0..2_u8, 0..3_u8, 0..3_u8)
                .prop_map(|(namespace, name, label)| Write::Put { namespace, name, label }),
            3 => (0..2_u8, 0..3_u8).prop_map(|(namespace, name)| Write::Remove { namespace, name }),
            1 => Just(Write::OtherKind),
            1 => Just(Write::Compact),
        ]
    }

    fn perform(store: &mut Store, write: &Write) {
        let key = |namespace: u8, name: u8| ObjectKey::namespaced(format!("n{namespace}"), format!("m{name}"));
        match *write {
            Write::Put { namespace, name, label } => {
                let key = key(namespace, name);
                let object = json!({ "metadata": {
                    "namespace": key.namespace(), "name": key.name(), "labels": { "x": label.to_string() },
                } });
                store.put(&CONFIG_MAPS, key, object, Duration::ZERO);
            }
            Write::Remove { namespace, name } => {
                store.remove(&CONFIG_MAPS, &key(namespace, name), Duration::ZERO);
            }
            Write::OtherKind => {
                store.put(&crate::kinds::PODS, key(0, 0), json!({}), Duration::ZERO);
            }
            Write::Compact => store.compact(),
        }
    }

    proptest! {
        /// A list and the watch from its version yield the state of a later list, with any selector; a version older
        /// than the window is an error.
        #[test]
        fn a_list_and_the_watch_from_its_version_lead_to_the_state(
            writes in prop::collection::vec(writes(), 0..40),
            window in 1..20_usize,
            namespace in prop::option::of(0..2_u8),
            label in prop::option::of(0..3_u8),
        ) {
            let mut server = Server::new(&crate::SandboxOptions { watch_window: window, ..Default::default() });
            for write in &writes {
                perform(&mut server.store, write);
            }
            let target = Target {
                verb: Verb::Watch,
                resource: CONFIG_MAPS,
                namespace: namespace.map(|namespace| format!("n{namespace}")),
                name: None,
                subresource: None,
            };
            let options = |version| ListOptions {
                labels: label.map(|label| format!("x={label}")),
                version: Some(version),
                version_match: Some(crate::request::VersionMatch::Exact),
                ..ListOptions::default()
            };
            let current = server.store.version();
            let state = |version| -> Result<Known, Status> {
                let mut known = Known::new();
                for object in server.list(&target, &options(version), None)?.items {
                    note(&mut known, &object.value());
                }
                Ok(known)
            };
            let expected = state(current).expect("the state is always there");
            for version in 1..=current {
                let mut watch = Watch::open(&server, &target, &options(version), Form::Whole, None)
                    .expect("the request is well formed");
                let Ok(mut known) = state(version) else {
                    prop_assert!(version < server.store.oldest());
                    prop_assert_eq!(watch.take_refusal().map(|status| status.code), Some(410));
                    continue;
                };
                prop_assert_eq!(watch.take_refusal(), None);
                while watch.pull(&server.store, |_| false).is_ok() && watch.next_at().is_some() {
                    match watch.next().expect("an event is ready") {
                        WatchEvent::Added(object) => prop_assert_eq!(note(&mut known, &object.value()), None),
                        WatchEvent::Modified(object) => prop_assert!(note(&mut known, &object.value()).is_some()),
                        WatchEvent::Deleted(object) => prop_assert!(known.remove(&key_of(&object.value())).is_some()),
                        WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => prop_assert!(false, "only events"),
                    }
                }
                prop_assert_eq!(&known, &expected);
            }
        }
    }

    #[test]
    fn the_window_bounds_what_is_kept() {
        let mut store = Store::new(3);
        for label in 0..10 {
            perform(&mut store, &Write::Put { namespace: 0, name: 0, label });
        }
        assert_eq!(store.events_after(store.oldest()).expect("in the window").count(), 3);
        let too_old = store.events_after(store.oldest() - 1).map(Iterator::count);
        assert_eq!(too_old, Err(TooOld { requested: store.oldest() - 1, oldest: store.oldest() }));
    }

    #[test]
    fn times_are_whole_seconds() {
        let now = Now { elapsed: Duration::ZERO, time: Timestamp::from_millisecond(1_999).expect("a time") };
        assert_eq!(now.stamp(30), "1970-01-01T00:00:31Z");
    }
}
