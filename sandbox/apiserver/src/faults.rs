//! Faults that tests inject: the rules, and which requests and watches they hit. Pure; `service` and `stream` apply
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use kcm_api::Resource;

use crate::request::{Target, Verb};
use crate::status::Status;

type Predicate = Box<dyn Fn(&Target) -> bool + Send + Sync>;

/// A fault, and the requests that it matches.
///
/// Without a limit a fault hits every request that it matches. Several faults may hit one request: their delays add
/// up, and the first one with another effect decides.
///
/// ```
/// use kcm_sandbox_apiserver::{Fault, PODS, Verb};
///
/// let third_create_is_lost = Fault::on(Verb::Create).resource(PODS).skip(2).times(1).lose_answer();
/// # drop(third_create_is_lost);
/// ```
#[must_use]
pub struct Fault {
    verbs: Vec<Verb>,
    resource: Option<Resource>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
    predicate: Option<Predicate>,
    skip: usize,
    times: Option<usize>,
    delay: Duration,
    effect: Option<Effect>,
}

/// The effect of a fault on a request, apart from delay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Fail(Box<Status>),
    Disconnect,
    LoseAnswer,
    Stall,
    /// The health check of the API server reports that etcd cannot be reached.
    NotReady,
}

/// An outage, which concerns all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    /// The API server.
    ApiServer,
    /// etcd behind it.
    Etcd,
}

/// The sum of all faults that hit one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) effect: Option<Effect>,
}

impl Fault {
    /// Matches requests of one verb.
    pub fn on(verb: Verb) -> Self {
        Self { verbs: vec![verb], ..Self::on_any() }
    }

    /// Matches creates, updates, patches and deletions.
    pub fn on_writes() -> Self {
        let verbs = vec![Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];
        Self { verbs, ..Self::on_any() }
    }

    /// Matches all resource requests.
    pub fn on_any() -> Self {
        Self {
            verbs: Vec::new(),
            resource: None,
            namespace: None,
            name: None,
            subresource: None,
            predicate: None,
            skip: 0,
            times: None,
            delay: Duration::ZERO,
            effect: None,
        }
    }

    /// Matches only this resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Matches only this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Matches only requests for objects of this name. For a create, this is the name of its object.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Matches only this subresource.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Matches only requests for which `predicate` returns true.
    pub fn when(mut self, predicate: impl Fn(&Target) -> bool + Send + Sync + 'static) -> Self {
        self.predicate = Some(Box::new(predicate));
        self
    }

    /// Skips the first `count` matching requests.
    pub const fn skip(mut self, count: usize) -> Self {
        self.skip = count;
        self
    }

    /// Limits the number of requests that the fault hits.
    pub const fn times(mut self, count: usize) -> Self {
        self.times = Some(count);
        self
    }

    /// Delays the request before it reaches the API server.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Returns this error; the request has no effect.
    pub fn fail(mut self, status: Status) -> Self {
        self.effect = Some(Effect::Fail(Box::new(status)));
        self
    }

    /// Drops the connection; the request has no effect.
    pub fn disconnect(mut self) -> Self {
        self.effect = Some(Effect::Disconnect);
        self
    }

    /// Drops the connection after the request has taken effect.
    pub fn lose_answer(mut self) -> Self {
        self.effect = Some(Effect::LoseAnswer);
        self
    }

    /// Never responds; the request has no effect.
    pub fn stall(mut self) -> Self {
        self.effect = Some(Effect::Stall);
        self
    }

    fn matches(&self, target: &Target) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&target.verb))
            && self.resource.as_ref().is_none_or(|resource| *resource == target.resource)
            && (self.namespace.is_none() || self.namespace == target.namespace)
            && (self.name.is_none() || self.name == target.name)
            && (self.subresource.is_none() || self.subresource == target.subresource)
            && self.predicate.as_ref().is_none_or(|holds| holds(target))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("verbs", &self.verbs)
            .field("resource", &self.resource)
            .field("delay", &self.delay)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// The way in which a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The stream ends normally, as after its timeout.
    Clean,
    /// The connection breaks without an end.
    Broken,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    matched: usize,
    hits: usize,
}

/// Faults of the watches and lists of one resource.
#[derive(Debug, Default)]
pub(crate) struct WatchFaults {
    pub(crate) held: bool,
    pub(crate) delay: Duration,
    pub(crate) drop_next: usize,
    hidden: BTreeSet<u64>,
    cut: Option<(u64, Cut)>,
    silenced: u64,
    bookmarked: u64,
    pub(crate) cut_next: Option<(usize, Cut)>,
    pub(crate) stale: Option<u64>,
}

/// All faults and their hit counts.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: BTreeMap<u64, Rule>,
    watches: BTreeMap<Resource, WatchFaults>,
    outage: Option<Outage>,
    /// The last outage that broke all watches.
    broke_watches: u64,
    /// Sequence number of rules, streams and commands to streams; a stream ignores commands older than itself.
    count: u64,
}

impl Faults {
    pub(crate) fn tick(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn inject(&mut self, fault: Fault) -> u64 {
        let id = self.tick();
        self.rules.insert(id, Rule { fault, matched: 0, hits: 0 });
        id
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.rules.remove(&id);
    }

    /// Returns the matched and the hit requests of a rule.
    pub(crate) fn counts(&self, id: u64) -> (usize, usize) {
        self.rules.get(&id).map_or((0, 0), |rule| (rule.matched, rule.hits))
    }

    pub(crate) fn judge(&mut self, target: &Target) -> Verdict {
        let mut verdict = Verdict::default();
        for rule in self.rules.values_mut().filter(|rule| rule.fault.matches(target)) {
            rule.matched += 1;
            let spent = rule.fault.times.is_some_and(|times| rule.hits >= times);
            if rule.matched <= rule.fault.skip || spent {
                continue;
            }
            rule.hits += 1;
            verdict.delay += rule.fault.delay;
            verdict.effect = verdict.effect.or_else(|| rule.fault.effect.clone());
        }
        verdict
    }

    pub(crate) fn begin_outage(&mut self, outage: Outage) {
        self.outage = Some(outage);
        if outage == Outage::ApiServer {
            self.broke_watches = self.tick();
        }
    }

    pub(crate) const fn end_outage(&mut self) {
        self.outage = None;
    }

    /// The effect of the current outage on a request, of a resource or for another `path`.
    pub(crate) fn outage_effect(&self, path: Option<&[String]>) -> Option<Effect> {
        match (self.outage?, path) {
            (Outage::ApiServer, _) => Some(Effect::Disconnect),
            (Outage::Etcd, None) => Some(Effect::Fail(Box::new(Status::new(500, "", "etcdserver: request timed out")))),
            (Outage::Etcd, Some([path, ..])) if ["healthz", "livez", "readyz"].contains(&path.as_str()) => {
                Some(Effect::NotReady)
            }
            (Outage::Etcd, Some(_)) => None,
        }
    }

    /// Returns whether an outage broke a stream that opened at `since`.
    pub(crate) const fn has_broken(&self, since: u64) -> bool {
        self.broke_watches > since
    }

    pub(crate) fn clear(&mut self) {
        self.outage = None;
        self.rules.clear();
        self.watches.clear();
    }

    pub(crate) fn of(&mut self, resource: &Resource) -> &mut WatchFaults {
        self.watches.entry(resource.clone()).or_default()
    }

    pub(crate) fn stale(&self, resource: &Resource) -> Option<u64> {
        self.watches.get(resource)?.stale
    }

    /// Records a write; `oldest` is the start of the event window.
    pub(crate) fn wrote(&mut self, resource: &Resource, version: u64, oldest: u64) {
        let Some(faults) = self.watches.get_mut(resource).filter(|faults| faults.drop_next > 0) else { return };
        faults.drop_next -= 1;
        faults.hidden.insert(version);
        faults.hidden.retain(|version| *version >= oldest);
    }

    pub(crate) fn cut(&mut self, resource: &Resource, how: Cut) {
        let order = self.tick();
        self.of(resource).cut = Some((order, how));
    }

    pub(crate) fn silence(&mut self, resource: &Resource) {
        let order = self.tick();
        self.of(resource).silenced = order;
    }

    pub(crate) fn bookmark(&mut self, resource: &Resource) {
        let order = self.tick();
        self.of(resource).bookmarked = order;
    }
}

impl WatchFaults {
    /// Returns how a stream that opened at `since` ends now, if it does.
    pub(crate) fn cuts(&self, since: u64) -> Option<Cut> {
        self.cut.filter(|(order, _)| *order > since).map(|(_, how)| how)
    }

    pub(crate) const fn is_silent(&self, since: u64) -> bool {
        self.silenced > since
    }

    /// The sequence number of the latest bookmark command.
    pub(crate) const fn bookmarked(&self) -> u64 {
        self.bookmarked
    }

    pub(crate) fn hides(&self, version: u64) -> bool {
        self.hidden.contains(&version)
    }
}
