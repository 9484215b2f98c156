//! Histories that are written down by hand.

use std::sync::Arc;
use std::time::Duration;

use kcm_sandbox_apiserver::{Resource, Verb};
use serde_json::{Value, json};

use super::{key_of, name};
use crate::history::{Author, Change, History, Seen};

/// The namespace of the keys of loops.
const NAMESPACE: &str = "shop";

/// A history under construction.
///
/// An author is the name of a loop, or `user`. The key of a loop is `shop/web`.
#[derive(Default)]
#[must_use = "a story is checked by a rule"]
pub struct Story(History);

impl Story {
    /// Begins with these objects.
    pub fn of(objects: impl IntoIterator<Item = (Resource, Value)>) -> Self {
        let mut story = Self::default();
        for (resource, object) in objects {
            story.0.start.entry(resource).or_default().insert(key_of(&object), Arc::new(object));
        }
        story
    }

    /// Returns the history of the story so far.
    #[must_use]
    pub fn history(self) -> History {
        self.0
    }

    /// Adds a change that creates an object.
    pub fn create(self, author: &str, resource: &Resource, object: Value) -> Self {
        self.change(author, Verb::Create, resource, &object.clone(), Some(object))
    }

    /// Changes the object of that name by `edit`.
    ///
    /// # Panics
    /// If there is no object of that name.
    pub fn edit(self, author: &str, resource: &Resource, of: &str, edit: impl FnOnce(&mut Value)) -> Self {
        let mut object = self.current(resource, of);
        edit(&mut object);
        self.change(author, Verb::Update, resource, &object.clone(), Some(object))
    }

    /// Removes the object of that name, with its uid as the precondition.
    pub fn delete(self, author: &str, resource: &Resource, of: &str) -> Self {
        let object = self.current(resource, of);
        let mut story = self.change(author, Verb::Delete, resource, &object.clone(), None);
        let sent = json!({ "preconditions": { "uid": object["metadata"]["uid"] } });
        story.last().sent = Arc::new(sent);
        story
    }

    /// The last change was sent with this body.
    pub fn sent(mut self, body: Value) -> Self {
        self.last().sent = Arc::new(body);
        self
    }

    /// The reconcile of the last change saw its object before the first change.
    pub fn seeing_the_start(mut self) -> Self {
        let resources: Vec<_> = self.0.start.keys().map(|resource| (resource.clone(), 1)).collect();
        self.last().seen = Some(Seen::of(resources));
        self
    }

    /// The last change was sent to a subresource.
    pub fn at_subresource(mut self, subresource: &str) -> Self {
        self.last().subresource = Some(subresource.to_owned());
        self
    }

    /// The last change happened at this time.
    pub fn at(mut self, time: Duration) -> Self {
        self.last().at = time;
        self
    }

    fn last(&mut self) -> &mut Change {
        self.0.changes.last_mut().expect("a change comes first")
    }

    fn current(&self, resource: &Resource, of: &str) -> Value {
        let end = self.0.end();
        let found = end.get(resource).and_then(|objects| objects.values().find(|object| name(object) == of));
        Value::clone(found.expect("the object must exist"))
    }

    fn change(mut self, author: &str, verb: Verb, resource: &Resource, of: &Value, after: Option<Value>) -> Self {
        let key = key_of(of);
        let before = self.0.end().get(resource).and_then(|objects| objects.get(&key)).cloned();
        let author = match author {
            "user" => Author::User,
            name => Author::Loop { process: 1, name: name.to_owned(), key: format!("{NAMESPACE}/web") },
        };
        let version = 10 + self.0.changes.len() as u64;
        let after = after.map(Arc::new);
        let sent = after.clone().unwrap_or_default();
        let (at, resource, subresource, answered, seen) = (Duration::ZERO, resource.clone(), None, true, None);
        self.0.changes.push(Change {
            at,
            author,
            verb,
            resource,
            subresource,
            key,
            version,
            before,
            after,
            sent,
            answered,
            seen,
        });
        self
    }
}
