//! The caches of a process: the events that wait for each, and the version up to which it has received them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::Uri;
use http_body::Frame;
use kcm_sandbox_apiserver::{ConnectionLost, LineKind, OpenWatch, Resource, Sandbox, Status, WatchLine, WatchStep};
use serde_json::Value;

use crate::gate::Lines;
use crate::history::Seen;
use crate::holds::{self, Hold};
use crate::schedule::Relist;

/// A watch of the process, with the events that wait for it.
pub(crate) struct Cache {
    watch: OpenWatch,
    lines: Lines,
    pub(crate) waiting: VecDeque<WatchLine>,
    /// Plural name of the resource, with the selectors in brackets.
    pub(crate) name: String,
    pub(crate) hold: Option<Hold>,
    /// The watch ends instead of the next delivery, by the perturbation of that index.
    pub(crate) relist: Option<(usize, Relist)>,
    /// The delivery for the waiting events has been counted.
    pub(crate) is_counted: bool,
    /// The events are changes, and not the objects of a list.
    is_synced: bool,
}

impl Cache {
    /// The cache of a watch that was opened by a request to `uri`.
    pub(crate) fn new(watch: OpenWatch, lines: Lines, uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let is_synced = !query.contains("sendInitialEvents=true");
        let selectors: Vec<&str> = query.split('&').filter(|part| part.contains("Selector=")).collect();
        let mut name = watch.resource().plural.to_string();
        if !selectors.is_empty() {
            name = format!("{name}[{}]", selectors.join("&"));
        }
        Self { watch, lines, waiting: VecDeque::new(), name, hold: None, relist: None, is_counted: false, is_synced }
    }

    pub(crate) fn resource(&self) -> &Resource {
        self.watch.resource()
    }

    /// Returns `true` if the watch begins with all objects.
    pub(crate) const fn lists(&self) -> bool {
        !self.is_synced
    }

    /// Returns `true` if the process reads the watch no more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lines.is_closed()
    }

    /// Reads the events that the store has for the watch.
    pub(crate) fn pull(&mut self) {
        while let WatchStep::Line(line) = self.watch.step() {
            self.waiting.push_back(line);
        }
    }

    pub(crate) const fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    pub(crate) fn release(&mut self) -> bool {
        holds::release(&mut self.hold)
    }

    /// Sends all waiting events. Returns their number.
    pub(crate) fn send(&mut self, received: &mut Received) -> usize {
        (self.hold, self.is_counted) = (None, false);
        let count = self.waiting.len();
        self.is_synced |= self.waiting.iter().any(|line| line.kind == LineKind::Bookmark);
        if let Some(last) = self.waiting.back().filter(|_| self.is_synced) {
            received.up_to(self.watch.resource(), &self.name, &last.bytes);
        }
        for line in self.waiting.drain(..) {
            // A receiver that is gone has ended its watch.
            drop(self.lines.send(Ok(Frame::data(line.bytes))));
        }
        count
    }

    /// Ends the watch. The events that wait are lost, unless a bookmark has to follow them.
    pub(crate) fn cut(mut self, how: Relist, sandbox: &Sandbox, received: &mut Received) {
        match how {
            Relist::Clean => {}
            Relist::Bookmark => {
                self.waiting.push_back(self.watch.bookmark());
                self.send(received);
            }
            Relist::Broken => drop(self.lines.send(Err(ConnectionLost))),
            Relist::Compacted => sandbox.compact(),
            Relist::Expired => {
                let status = Status::expired("too old resource version".to_owned());
                let line = format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.to_json());
                drop(self.lines.send(Ok(Frame::data(Bytes::from(line)))));
            }
        }
    }
}

/// The versions up to which the caches of a process have received events, by resource and name.
#[derive(Debug, Default)]
pub(crate) struct Received(BTreeMap<(Resource, String), u64>);

impl Received {
    fn up_to(&mut self, resource: &Resource, cache: &str, line: &[u8]) {
        let parsed: Value = serde_json::from_slice(line).unwrap_or_default();
        let version = parsed["object"]["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        if let Some(version) = version {
            self.0.insert((resource.clone(), cache.to_owned()), version);
        }
    }

    /// Returns the version up to which a cache has received events.
    pub(crate) fn version(&self, resource: &Resource, cache: &str) -> Option<u64> {
        self.0.get(&(resource.clone(), cache.to_owned())).copied()
    }

    /// The state of the caches. Of several caches of a resource, the one behind the others counts.
    pub(crate) fn seen(&self) -> Seen {
        let mut oldest = BTreeMap::new();
        for ((resource, _), version) in &self.0 {
            let least = oldest.entry(resource.clone()).or_insert(*version);
            *least = (*least).min(*version);
        }
        Seen::of(oldest)
    }
}
