//! Pods beyond the desired count, and indexes of Jobs that run twice: a successor that acts on a cache that lags behind
//! creates them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kcm_e2e_harness::wait::eventually_within;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::LIMIT;

/// Time for which a replica set may still create pods for a desired count that has been lowered: the manager reads it from
/// its cache.
const GRACE: Duration = Duration::from_secs(5);

/// One change of a pod or a replica set, as a watch showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    /// The resource version, which orders the changes of both kinds.
    version: u64,
    /// Time since the record began.
    at: Duration,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// The replica set with that uid has this desired count.
    Desired(String, usize),
    /// The pod of the replica set with that uid is neither finished nor terminating.
    Active(String, String),
    /// It is no more.
    Inactive(String),
    /// The pod runs this index of that Job.
    Indexed { job: String, index: String, pod: String },
}

/// The record of all changes of pods and replica sets in the namespace `default`.
#[derive(Clone)]
pub(super) struct History {
    client: Client,
    began: Instant,
    changes: Arc<Mutex<Vec<Change>>>,
}

impl History {
    pub(super) fn new(client: Client) -> Self {
        Self { client, began: Instant::now(), changes: Arc::default() }
    }

    /// Records until it is dropped; returns only if a watch fails.
    pub(super) async fn record(&self) -> Result<()> {
        let set = |set: &ReplicaSet, _| {
            let desired = set.spec.replicas.unwrap_or(1);
            Some(What::Desired(set.uid()?, usize::try_from(desired).ok()?))
        };
        let pod = |pod: &Pod, is_deleted| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
            let is_over =
                is_deleted || pod.metadata.deletion_timestamp.is_some() || ["Succeeded", "Failed"].contains(&phase);
            let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
            if let (Some(owner), Some(index)) = (owner, pod.annotations().get(INDEX)) {
                return Some(What::Indexed { job: owner.name.clone(), index: index.clone(), pod: pod.uid()? });
            }
            Some(match owner.filter(|owner| !is_over && owner.kind == "ReplicaSet") {
                Some(owner) => What::Active(pod.name_any(), owner.uid.clone()),
                None => What::Inactive(pod.name_any()),
            })
        };
        tokio::try_join!(self.watch(set), self.watch(pod)).map(drop)
    }

    async fn watch<K>(&self, see: impl Fn(&K, bool) -> Option<What>) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::default_namespaced(self.client.clone());
        let mut version = "0".to_owned();
        loop {
            let watch = WatchParams::default();
            let events = eventually_within("a watch", LIMIT, async || Ok(api.watch(&watch, &version).await?)).await?;
            let mut events = std::pin::pin!(events);
            // A watch that ends or breaks is resumed.
            while let Ok(Some(event)) = events.try_next().await {
                let (object, is_deleted) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(bookmark) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    WatchEvent::Error(status) => anyhow::bail!("the watch failed: {status:?}"),
                };
                version = object.resource_version().context("an object has a version")?;
                let Some(what) = see(&object, is_deleted) else { continue };
                let change = Change { version: version.parse()?, at: self.began.elapsed(), what };
                self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
            }
        }
    }

    /// The pods that were created beyond the desired count of their replica sets.
    pub(super) fn surplus(&self) -> Vec<String> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        changes.sort_by_key(|change| change.version);
        surplus(&changes)
    }

    /// The indexes of Jobs for which more than one pod was created. No pod here fails or is deleted from outside.
    pub(super) fn repeated(&self) -> Vec<String> {
        repeated(&self.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The annotation of the pods of indexed Jobs.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

fn repeated(changes: &[Change]) -> Vec<String> {
    let mut pods: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for Change { what, .. } in changes {
        match what {
            What::Indexed { job, index, pod } => {
                pods.entry((job, index)).or_default().insert(pod);
            }
            What::Desired(..) | What::Active(..) | What::Inactive(_) => {}
        }
    }
    let repeated = pods.into_iter().filter(|(_, pods)| pods.len() > 1);
    repeated.map(|((job, index), pods)| format!("index {index} of {job}: {} pods", pods.len())).collect()
}

/// The desired counts of one replica set, each with the time at which it was set.
#[derive(Default)]
struct Desired(Vec<(Duration, usize)>);

impl Desired {
    /// The greatest count within the grace before that time.
    fn most(&self, at: Duration) -> usize {
        let ended = |index: usize| self.0.get(index + 1).map(|(at, _)| *at);
        let counts = self.0.iter().enumerate();
        let in_force = counts.filter(|(index, _)| ended(*index).is_none_or(|ended| ended + GRACE >= at));
        in_force.map(|(_, (_, count))| *count).max().unwrap_or(0)
    }
}

/// The surplus pods in a history that is sorted by version.
fn surplus(changes: &[Change]) -> Vec<String> {
    let mut desired: HashMap<&str, Desired> = HashMap::new();
    let mut owners: HashMap<&str, &str> = HashMap::new();
    let mut active: HashMap<&str, usize> = HashMap::new();
    let mut surplus = Vec::new();
    for Change { version, at, what } in changes {
        match what {
            What::Desired(set, count) => desired.entry(set).or_default().0.push((*at, *count)),
            What::Active(pod, set) => {
                if owners.insert(pod, set).is_some() {
                    continue;
                }
                let count = active.entry(set).or_default();
                *count += 1;
                // A set that was recorded later is not judged.
                let Some(desired) = desired.get(&**set) else { continue };
                let most = desired.most(*at);
                if *count > most {
                    surplus.push(format!("{pod} at {version}: {count} active pods, {most} desired"));
                }
            }
            What::Inactive(pod) => {
                if let Some(set) = owners.remove(&**pod)
                    && let Some(count) = active.get_mut(set)
                {
                    *count -= 1;
                }
            }
            What::Indexed { .. } => {}
        }
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(version: u64, seconds: u64, what: What) -> Change {
        Change { version, at: Duration::from_secs(seconds), what }
    }

    fn active(pod: &str) -> What {
        What::Active(pod.to_owned(), "set".to_owned())
    }

    fn desired(count: usize) -> What {
        What::Desired("set".to_owned(), count)
    }

    #[test]
    fn pods_beyond_the_desired_count_are_surplus_at_the_revision_at_which_they_are_created() {
        let history = [
            change(1, 0, desired(2)),
            change(2, 0, active("a")),
            change(3, 0, active("b")),
            change(4, 1, active("b")),
            change(5, 1, What::Inactive("a".to_owned())),
            change(6, 1, active("c")),
            change(7, 1, active("d")),
        ];
        assert_eq!(surplus(&history), ["d at 7: 3 active pods, 2 desired"]);
    }

    #[test]
    fn an_index_with_several_pods_is_repeated() {
        let indexed = |index: &str, pod: &str| What::Indexed {
            job: "job".to_owned(),
            index: index.to_owned(),
            pod: pod.to_owned(),
        };
        let history = [
            change(1, 0, indexed("0", "a")),
            change(2, 0, indexed("1", "b")),
            change(3, 1, indexed("0", "a")),
            change(4, 1, indexed("1", "c")),
        ];
        assert_eq!(repeated(&history), ["index 1 of job: 2 pods"]);
    }

    #[test]
    fn a_lowered_count_holds_for_creations_after_the_grace() {
        let history = [
            change(1, 0, desired(2)),
            change(2, 0, active("a")),
            change(3, 10, desired(1)),
            change(4, 14, active("b")),
            change(5, 16, What::Inactive("b".to_owned())),
            change(6, 16, active("c")),
        ];
        assert_eq!(surplus(&history), ["c at 6: 2 active pods, 1 desired"]);
    }
}
