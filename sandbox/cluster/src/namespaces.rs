//! A small namespace controller: empties terminating namespaces, and creates the default objects of new ones.
//!
//! # Upstream
//! `pkg/controller/namespace/deletion`, `pkg/controller/serviceaccount`, `pkg/controller/certificates/rootcacertpublisher`

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use serde_json::{Value, json};

use crate::change::Change;
use crate::timers::Timers;
use kcm_sandbox_apiserver::direct::{DeleteOptions, Propagation};
use kcm_sandbox_apiserver::direct::{DirectClient, Objects};
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{CONFIG_MAPS, NAMESPACES};

const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "serviceaccounts", "ServiceAccount");
/// Interval at which the remaining content is checked.
const RECOUNT: Duration = Duration::from_secs(5);

/// Empties terminating namespaces, and creates the default objects of new ones.
#[derive(Debug)]
pub(crate) struct Namespaces {
    terminating: BTreeSet<String>,
    new: BTreeSet<String>,
    timers: Timers<String>,
    deletes: bool,
    furnishes: bool,
}

/// The remaining content of a namespace. Pure.
#[derive(Debug, Default, PartialEq, Eq)]
struct Remains {
    by_resource: BTreeMap<String, usize>,
    by_finalizer: BTreeMap<String, usize>,
}

impl Namespaces {
    pub(crate) fn new(deletes: bool, furnishes: bool) -> Self {
        Self { terminating: BTreeSet::new(), new: BTreeSet::new(), timers: Timers::default(), deletes, furnishes }
    }

    pub(crate) fn observe(&mut self, change: &Change, now: Duration) {
        if *change.resource == NAMESPACES {
            let name = change.key.name().to_owned();
            let terminating = change.new.is_some_and(|new| json::is_terminating(new));
            if !terminating {
                self.terminating.remove(&name);
                self.timers.set(&name, None);
            } else if self.deletes && self.terminating.insert(name.clone()) {
                self.timers.set(&name, Some(now));
            }
            if change.old.is_none() && change.new.is_some() && !terminating && self.furnishes {
                self.new.insert(name);
            }
        } else if let Some(namespace) = change.key.namespace().filter(|it| self.terminating.contains(*it)) {
            // A deletion may be the last one; a creation may have raced with the termination.
            if change.new.is_none() || change.old.is_none() {
                self.timers.set_earlier(&namespace.to_owned(), now);
            }
        }
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        if self.new.is_empty() { self.timers.next() } else { Some(Duration::ZERO) }
    }

    pub(crate) fn act(&mut self, api: &DirectClient, objects: &Objects) {
        while let Some(name) = self.new.pop_first() {
            furnish(api, &name);
        }
        let now = api.now().elapsed;
        while let Some(name) = self.timers.pop_due(now) {
            if empty(api, objects, &name) {
                self.timers.set(&name, Some(now + RECOUNT));
            }
        }
    }
}

/// Creates the objects that other controllers create in every namespace; already exists is ignored.
fn furnish(api: &DirectClient, namespace: &str) {
    if api.serves(&SERVICE_ACCOUNTS) {
        let account = json!({ "metadata": { "name": "default", "namespace": namespace } });
        drop(api.create(&SERVICE_ACCOUNTS, account));
    }
    let authority = json!({
        "metadata": { "name": "kube-root-ca.crt", "namespace": namespace, "annotations": {
            "kubernetes.io/description": "The authority of this sandbox is in the kubeconfig that it writes.",
        } },
        "data": { "ca.crt": "" },
    });
    drop(api.create(&CONFIG_MAPS, authority));
}

/// Deletes the content of a namespace, or finalizes an empty one; returns whether content remains.
fn empty(api: &DirectClient, objects: &Objects, namespace: &str) -> bool {
    let mut remains = Remains::default();
    for (resource, all) in objects.iter().filter(|(resource, _)| resource.namespaced) {
        let here =
            all.range(ObjectKey::namespaced(namespace, "")..).take_while(|(key, _)| key.namespace() == Some(namespace));
        for (key, object) in here {
            let object = object.value();
            remains.count(resource, &object);
            if !json::is_terminating(&object) {
                let uid = Some(json::uid(&object).to_owned());
                let propagation = Some(Propagation::Background);
                // Not found is success.
                drop(api.delete(resource, key, &DeleteOptions { uid, propagation, ..DeleteOptions::default() }));
            }
        }
    }
    let key = ObjectKey::cluster_scoped(namespace);
    let stamp = api.now().stamp(0);
    // The namespace may already be deleted.
    drop(api.edit(&NAMESPACES, &key, Some("status"), |old| remains.described(old, &stamp)));
    let left = !remains.by_resource.is_empty();
    if !left {
        drop(api.edit(&NAMESPACES, &key, Some("finalize"), |old| {
            let mut finalizers = json::list(old, &["spec", "finalizers"]).to_vec();
            finalizers.retain(|name| *name != "kubernetes");
            let mut new = old.clone();
            json::set(&mut new, &["spec", "finalizers"], (!finalizers.is_empty()).then(|| finalizers.into()));
            (new != *old).then_some(new)
        }));
    }
    left
}

impl Remains {
    fn count(&mut self, resource: &Resource, object: &Value) {
        let name = format!("{}.{}", resource.plural, resource.group);
        *self.by_resource.entry(name).or_default() += 1;
        for finalizer in json::finalizers(object) {
            *self.by_finalizer.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Returns the namespace with its conditions; `None` if they are unchanged.
    fn described(&self, namespace: &Value, stamp: &str) -> Option<Value> {
        let listed = |counts: &BTreeMap<String, usize>, between: &str| {
            let counted = counts.iter().map(|(name, count)| format!("{name} {between} {count} resource instances"));
            counted.collect::<Vec<_>>().join(", ")
        };
        let content = listed(&self.by_resource, "has");
        let finalizers = listed(&self.by_finalizer, "in");
        let content = (!content.is_empty()).then(|| format!("Some resources are remaining: {content}"));
        let finalizers = (!finalizers.is_empty())
            .then(|| format!("Some content in the namespace has finalizers remaining: {finalizers}"));
        let mut conditions = json::list(namespace, &["status", "conditions"]).to_vec();
        for (kind, problem, reason, calm_reason, calm) in [
            (
                "NamespaceDeletionDiscoveryFailure",
                None,
                "",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                None,
                "",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                content,
                "SomeResourcesRemain",
                "ContentRemoved",
                "All content successfully removed",
            ),
            (
                "NamespaceFinalizersRemaining",
                finalizers,
                "SomeFinalizersRemain",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ] {
            let is = if problem.is_some() { "True" } else { "False" };
            let reason = if problem.is_some() { reason } else { calm_reason };
            let message = problem.unwrap_or_else(|| calm.to_owned());
            let known = conditions.iter().position(|condition| json::text(condition, &["type"]) == Some(kind));
            let since = known
                .map(|at| &conditions[at])
                .filter(|old| json::text(old, &["status"]) == Some(is))
                .and_then(|old| json::text(old, &["lastTransitionTime"]))
                .unwrap_or(stamp);
            let new = json!({
                "type": kind, "status": is, "lastTransitionTime": since, "reason": reason, "message": message,
            });
            match known {
                Some(at) => conditions[at] = new,
                None => conditions.push(new),
            }
        }
        let mut new = namespace.clone();
        json::set(&mut new, &["status", "conditions"], Some(conditions.into()));
        (new != *namespace).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kcm_sandbox_apiserver::PODS;

    #[test]
    fn conditions_report_the_remaining_content() {
        let mut remains = Remains::default();
        remains.count(&PODS, &json!({ "metadata": { "finalizers": ["a/b"] } }));
        remains.count(&PODS, &json!({}));
        let described = remains.described(&json!({}), "1").expect("there were no conditions");
        let messages: Vec<&str> = json::list(&described, &["status", "conditions"])
            .iter()
            .filter(|condition| condition["status"] == "True")
            .map(|condition| condition["message"].as_str().expect("a condition has a message"))
            .collect();
        assert_eq!(
            messages,
            [
                "Some resources are remaining: pods. has 2 resource instances",
                "Some content in the namespace has finalizers remaining: a/b in 1 resource instances",
            ]
        );
        assert_eq!(remains.described(&described, "2"), None);
        let calm = Remains::default().described(&described, "3").expect("nothing is left");
        assert!(json::list(&calm, &["status", "conditions"]).iter().all(|condition| condition["status"] == "False"));
    }
}
