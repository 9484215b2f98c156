//! Requests, responses and events on their way, with the perturbations of their anchors.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kcm_sandbox_apiserver::{ConnectionLost, Exchanged};
use serde_json::Value;

use super::record::Sent;
use super::{Conductor, Reconcile};
use crate::deliver::Cache;
use crate::gate::{Waiting, stream, whole};
use crate::history::{Author, Seen};
use crate::holds::is_free;
use crate::plant::Wire;
use crate::requests::{
    Answer, Deviation, Nature, Pending, fails, failure, holds_request, holds_response, mutate, nature_of, take, verb_of,
};
use crate::schedule::{Access, Moment, Place, Settings, What};

impl Conductor<'_> {
    pub(super) fn deliver_response(&mut self) -> bool {
        let now = self.progress;
        let free = self.answers.iter().position(|answer| is_free(answer.hold.as_ref(), now, None));
        free.is_some_and(|index| self.deliver_response_at(index))
    }

    pub(super) fn deliver_response_at(&mut self, index: usize) -> bool {
        let Some(answer) = self.answers.remove(index) else { return false };
        self.note(&format!("response {}", answer.text));
        let is_lost = answer.response.is_err();
        // A client that has given up reads no response.
        let arrives = answer.reply.send(answer.response).is_ok();
        if arrives && !is_lost && answer.is_truthful {
            for change in &mut self.history.changes[answer.changes] {
                change.answered = true;
            }
        }
        true
    }

    /// Performs the oldest request that is not held.
    pub(super) fn perform_request(&mut self) -> bool {
        let now = self.progress;
        let free = self.held.iter().position(|pending| is_free(pending.hold.as_ref(), now, None));
        let pending = match free {
            Some(index) => self.held.remove(index),
            None => match self.gate.take() {
                Some(waiting) => self.arrive(waiting),
                None => return false,
            },
        };
        self.handle(pending);
        true
    }

    /// Counts a request, and the reconcile that it begins.
    pub(super) fn arrive(&mut self, waiting: Waiting) -> Pending {
        let mut deviations = Vec::new();
        let key = waiting.key();
        if !key.is_empty() && !waiting.request.uri().path().contains("/events") {
            let of = waiting.name();
            if let Some(address) = waiting.origin.as_ref().and_then(|origin| origin.key.clone()) {
                let last = self.reconciles.get(&(of.clone(), key.clone()));
                if last.is_none_or(|last| !Arc::ptr_eq(&last.key, &address)) {
                    self.note_reconcile(&of, &key);
                    let begun = Reconcile { key: address, seen: self.received.seen() };
                    self.reconciles.insert((of.clone(), key.clone()), begun);
                    deviations.extend(self.pass(Place::Taken { of: of.clone(), key: key.clone() }, Nature::Other));
                }
            }
            let access = if waiting.writes() { Access::Write } else { Access::Read };
            deviations.extend(self.pass(Place::Request { of, key, access }, nature_of(&waiting)));
        }
        Pending { waiting, deviations, hold: None }
    }

    fn note_reconcile(&mut self, of: &str, key: &str) {
        let behind: Vec<String> = self
            .caches
            .iter()
            .filter(|cache| !cache.waiting.is_empty())
            .map(|cache| format!("{} is {} behind", cache.name, cache.waiting.len()))
            .collect();
        let sees = if behind.is_empty() { "sees everything".to_owned() } else { behind.join(", ") };
        self.note(&format!("{of} reconciles {key}: {sees}"));
    }

    /// Handles a request: what happens to it before the API server gets it, and the request itself.
    pub(super) fn handle(&mut self, mut pending: Pending) {
        if let Some((index, until)) = take(&mut pending.deviations, holds_request) {
            self.applies(index);
            pending.hold = Some(self.hold(until));
            self.held.push(pending);
            return;
        }
        let Pending { waiting, mut deviations, .. } = pending;
        let act = |what: &What| if let What::Act(name) = what { Some(name.clone()) } else { None };
        while let Some((index, name)) = take(&mut deviations, act) {
            self.act(index, &name);
        }
        let Some(waiting) = self.strike(waiting, &mut deviations) else { return };
        if let Some((index, (restart, settings))) = take(&mut deviations, |what| kills(what, Moment::Before)) {
            self.applies(index);
            self.kill(restart, settings);
            return;
        }
        self.perform(waiting, deviations);
    }

    fn act(&mut self, index: usize, name: &str) {
        let act = self.scenario.acts.iter().find(|(known, _)| known == name).map(|(_, act)| Arc::clone(act));
        if let Some(act) = act {
            self.applies(index);
            act(&self.sandbox);
            self.record_of(&Author::User);
        }
    }

    fn perform(&mut self, waiting: Waiting, mut deviations: Vec<Deviation>) {
        let (method, uri) = (waiting.request.method().clone(), waiting.request.uri().clone());
        if waiting.writes() {
            self.progress.writes += 1;
        }
        let (name, key) = (waiting.name(), waiting.key());
        let seen = self.reconciles.get(&(name.clone(), key.clone())).map(|reconcile| reconcile.seen.clone());
        let is_guarded = nature_of(&waiting) == Nature::GuardedWrite;
        let actor = waiting.actor();
        let Waiting { mut request, reply, .. } = waiting;
        let sent: Arc<Value> = Arc::new(serde_json::from_slice(request.body()).unwrap_or_default());
        if let Some(plant) = self.plant {
            plant.request(&mut request);
        }
        let first = self.history.changes.len();
        let may_fail = |what: &What| fails(what, Moment::Before).filter(|code| *code != 409 || is_guarded);
        if let Some((index, ())) = take(&mut deviations, |what| matches!(what, What::Mutate).then_some(()))
            && mutate(&mut request)
        {
            self.applies(index);
        }
        let exchanged = match take(&mut deviations, may_fail) {
            Some((index, code)) => {
                self.applies(index);
                Exchanged::Response(failure(code))
            }
            None if self.is_out() => Exchanged::Lost,
            None => self.sandbox.exchange(request),
        };
        let is_read = method == Method::GET && matches!(exchanged, Exchanged::Response(_));
        if is_read && let Some(reconcile) = self.reconciles.get_mut(&(name.clone(), key.clone())) {
            reconcile.seen = reconcile.seen.clone().and_live(self.sandbox.version());
        }
        let author = Author::Loop { process: self.number, name, key };
        let body = Arc::clone(&sent);
        self.record(&author, &Sent { verb: verb_of(&method), uri: &uri, body, seen: seen.as_ref() });
        let changes = first..self.history.changes.len();
        let mut is_truthful = true;
        let mut response = match exchanged {
            Exchanged::Response(response) => Ok(match take(&mut deviations, |what| fails(what, Moment::After)) {
                Some((index, code)) => {
                    self.applies(index);
                    is_truthful = false;
                    failure(code)
                }
                None => response,
            }),
            Exchanged::Watch(watch) => {
                let (response, lines) = stream();
                self.open(Cache::new(watch, lines, &uri));
                self.answers.push_back(Answer {
                    actor,
                    reply,
                    response: Ok(response),
                    text: format!("{method} {uri} 200"),
                    changes,
                    is_truthful,
                    hold: None,
                });
                return;
            }
            Exchanged::Lost => Err(ConnectionLost),
            // The client gives up after its timeout.
            Exchanged::Silence => return,
        };
        if let (Some(plant), Ok(response)) = (self.plant, &mut response) {
            let seen = self.received.seen();
            let wire = Wire { method: &method, uri: &uri, sent: &sent, history: &self.history, seen: &seen };
            plant.response(&wire, response);
        }
        let code = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.note(&format!("{author}: {method} {uri} {code}"));
        if let Some((index, (restart, settings))) = take(&mut deviations, |what| kills(what, Moment::After)) {
            self.applies(index);
            self.kill(restart, settings);
            return;
        }
        if let Some((index, ())) = take(&mut deviations, |what| matches!(what, What::LoseResponse).then_some(())) {
            self.applies(index);
            response = Err(ConnectionLost);
        }
        let hold = take(&mut deviations, holds_response).map(|(index, until)| {
            self.applies(index);
            self.hold(until)
        });
        let response = response.map(whole);
        self.answers.push_back(Answer {
            actor,
            reply,
            response,
            text: format!("{method} {uri} {code}"),
            changes,
            is_truthful,
            hold,
        });
    }

    fn open(&mut self, mut cache: Cache) {
        self.note(&format!("a watch of {} opens", cache.name));
        if let Some(plant) = self.plant {
            let known = self.received.version(cache.resource(), &cache.name);
            plant.list(&mut cache, &self.history, known);
        }
        self.caches.push(cache);
    }

    pub(super) fn deliver_events(&mut self) -> bool {
        let count = self.caches.len();
        let mut delivered = false;
        for index in 0..count {
            delivered |= self.deliver_to(index);
            // A watch has ended.
            if self.caches.len() != count {
                return true;
            }
        }
        delivered
    }

    /// Delivers the events that wait for a cache, or ends its watch. Returns `false` if none wait or they are held.
    pub(super) fn deliver_to(&mut self, index: usize) -> bool {
        if self.caches[index].waiting.is_empty() {
            return false;
        }
        if !self.caches[index].is_counted {
            self.caches[index].is_counted = true;
            let cache = self.caches[index].name.clone();
            let mut deviations = self.pass(Place::Delivery { cache }, Nature::Other);
            let held = |what: &What| if let What::Hold(until) = what { Some(*until) } else { None };
            if let Some((applied, until)) = take(&mut deviations, held) {
                self.applies(applied);
                self.caches[index].hold = Some(self.hold(until));
            }
            let relists = |what: &What| if let What::Relist(how) = what { Some(*how) } else { None };
            self.caches[index].relist = take(&mut deviations, relists);
        }
        let waiting = self.caches[index].waiting.len();
        if !is_free(self.caches[index].hold.as_ref(), self.progress, Some(waiting)) {
            return false;
        }
        if let Some((applied, how)) = self.caches[index].relist {
            self.applies(applied);
            self.caches.remove(index).cut(how, &self.sandbox, &mut self.received);
            return true;
        }
        let count = self.caches[index].send(&mut self.received);
        self.progress.events += u32::try_from(count).unwrap_or(u32::MAX);
        let text = format!("{count} events to {}", self.caches[index].name);
        self.note(&text);
        true
    }

    /// Performs a request whose process is dead.
    pub(super) fn exchange_late(&mut self, waiting: Waiting, author: &Author, seen: Option<&Seen>) {
        let (method, uri) = (waiting.request.method().clone(), waiting.request.uri().clone());
        let mut request = waiting.request;
        let body = Arc::new(serde_json::from_slice(request.body()).unwrap_or_default());
        if let Some(plant) = self.plant {
            plant.request(&mut request);
        }
        let code = match self.sandbox.exchange(request) {
            Exchanged::Response(response) => response.status().as_u16(),
            Exchanged::Watch(_) | Exchanged::Lost | Exchanged::Silence => 0,
        };
        self.record(author, &Sent { verb: verb_of(&method), uri: &uri, body, seen });
        self.note(&format!("{author}, dead: {method} {uri} {code}"));
    }
}

fn kills(what: &What, at: Moment) -> Option<(Duration, Settings)> {
    if let What::Kill { moment, restart, settings } = what {
        (*moment == at).then_some((*restart, *settings))
    } else {
        None
    }
}
