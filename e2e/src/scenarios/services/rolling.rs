//! One manager replaces another while all pods of a service are replaced.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::discovery::v1 as discoveryv1;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::deployments::watch::{follow, now};
use super::{apply, node, pod, service, status};
use crate::kubectl::Kubectl;
use crate::process::Process;
use crate::scenario::Case;
use crate::subject::Subject;
use crate::wait::{PATIENCE, eventually};

const PODS: usize = 1_000;
/// How many pods there are beyond those while they are replaced.
const SURGE: usize = 20;
/// One of the slices always has room for a surge, so that there is no reason for a further one.
const LIMIT: &str = "--max-endpoints-per-slice=225";
/// The steps of the rollout in which the manager is replaced.
const REPLACED_IN: [usize; 2] = [15, 32];
const AT_ONCE: usize = 16;

/// From the peer to ours and back: no slice is created, renamed or deleted, and no endpoint is absent while its pod is there.
pub(super) async fn is_handed_over_while_it_rolls(case: Case) -> Result<()> {
    let kubectl = Kubectl::of(&case);
    let pods = Pods(case.api());
    apply(&kubectl, &node()).await?;
    pods.create(0..PODS).await?;
    let manager = case.start(Subject::Peer, &[LIMIT])?;
    apply(&kubectl, &service("web", &json!({}))).await?;

    let slices: Api<discoveryv1::EndpointSlice> = case.api();
    let seen = RefCell::new(Seen::default());
    let since = now(&slices).await?;
    for slice in slices.list(&ListParams::default()).await? {
        seen.borrow_mut().see(&slice, false)?;
    }
    tokio::select! {
        broken = follow(&slices, since, |slice, gone| seen.borrow_mut().see(slice, gone)) => broken?,
        rolled = roll(&case, &pods, &seen, manager) => rolled?,
    }
    // No kubelet ends them, and kubectl deletes them one by one.
    pods.0.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
    Ok(())
}

async fn roll(case: &Case, pods: &Pods, seen: &RefCell<Seen>, mut manager: Process) -> Result<()> {
    let has = async |numbers: std::ops::Range<usize>| {
        eventually(&format!("the endpoints {numbers:?}"), async || {
            let missing = numbers.clone().map(address).filter(|address| !seen.borrow().is_ready(address)).count();
            ensure!(missing == 0, "{missing} are missing");
            Ok(())
        })
        .await
    };
    has(0..PODS).await?;
    let slices = seen.borrow_mut().roll();
    ensure!(slices == 5, "{slices} slices");
    let mut managers = [Subject::Ours, Subject::Peer].into_iter();
    for step in 0..PODS / SURGE {
        let (old, new) = (step * SURGE..(step + 1) * SURGE, PODS + step * SURGE..PODS + (step + 1) * SURGE);
        pods.create(new.clone()).await?;
        if REPLACED_IN.contains(&step) {
            // While it has the new pods to add, and the old ones of the step before to remove.
            manager.terminate()?;
            manager.wait(PATIENCE).await?;
            manager = case.start(managers.next().context("there are two")?, &[LIMIT])?;
        }
        has(new).await.with_context(|| format!("in step {step}"))?;
        seen.borrow_mut().may_leave.extend(old.clone().map(address));
        pods.delete(old).await?;
    }
    has(PODS..2 * PODS).await?;
    eventually("the old endpoints to be gone", async || {
        let count = seen.borrow().ready.len();
        ensure!(count == PODS, "there are {count} endpoints");
        Ok(())
    })
    .await?;
    manager.must_run()
}

/// The address of a pod.
fn address(number: usize) -> String {
    format!("10.9.{}.{}", number / 250, number % 250 + 1)
}

/// The pods, by numbers.
struct Pods(Api<corev1::Pod>);

impl Pods {
    /// Creates ready pods.
    async fn create(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let made = stream::iter(numbers).map(async |number| {
            let name = format!("web-{number}");
            let made: corev1::Pod = serde_json::from_value(pod(&name, "web", 8080))?;
            self.0.create(&PostParams::default(), &made).await.with_context(|| format!("cannot create {name}"))?;
            let ready: Value = serde_json::from_str(&status(&address(number), true))?;
            self.0.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await?;
            Ok(())
        });
        made.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn delete(&self, numbers: std::ops::Range<usize>) -> Result<()> {
        let deleted = stream::iter(numbers).map(async |number| {
            let name = format!("web-{number}");
            self.0.delete(&name, &DeleteParams::default().grace_period(0)).await.context(name)?;
            Ok(())
        });
        deleted.buffer_unordered(AT_ONCE).try_collect().await
    }
}

/// The slices and their ready endpoints, as a watch shows them.
#[derive(Default)]
struct Seen {
    /// The ready addresses by slice.
    slices: BTreeMap<String, BTreeSet<String>>,
    /// In how many slices each ready address is.
    ready: BTreeMap<String, usize>,
    /// The addresses of deleted pods.
    may_leave: BTreeSet<String>,
    left: BTreeSet<String>,
    rolls: bool,
}

impl Seen {
    fn is_ready(&self, address: &str) -> bool {
        self.ready.contains_key(address)
    }

    /// From now on the slices are those that there are, and endpoints leave only with their pods. Returns how many slices
    /// there are.
    fn roll(&mut self) -> usize {
        self.rolls = true;
        self.slices.len()
    }

    fn see(&mut self, slice: &discoveryv1::EndpointSlice, gone: bool) -> Result<()> {
        let name = slice.name_any();
        ensure!(!self.rolls || (!gone && self.slices.contains_key(&name)), "slice {name} came or went: gone is {gone}");
        let ready = |endpoint: &&discoveryv1::Endpoint| {
            endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
        };
        let now: BTreeSet<String> = if gone {
            BTreeSet::new()
        } else {
            slice.endpoints.iter().flatten().filter(ready).flat_map(|endpoint| endpoint.addresses.clone()).collect()
        };
        let before = self.slices.insert(name.clone(), now.clone()).unwrap_or_default();
        if gone {
            self.slices.remove(&name);
        }
        for address in now.difference(&before) {
            ensure!(!self.left.contains(address), "{address} has left and returns");
            *self.ready.entry(address.clone()).or_default() += 1;
        }
        for address in before.difference(&now) {
            let slices = self.ready.get_mut(address).context("it is in the slice")?;
            *slices -= 1;
            if *slices == 0 {
                ensure!(!self.rolls || self.may_leave.contains(address), "{address} leaves before its pod");
                self.ready.remove(address);
                self.left.insert(address.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::discovery::v1 as discoveryv1;
    use serde_json::json;

    use super::Seen;

    fn slice(name: &str, addresses: &[&str]) -> discoveryv1::EndpointSlice {
        let endpoint = |address: &&str| json!({ "addresses": [address], "conditions": { "ready": true } });
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        serde_json::from_value(json!({ "metadata": { "name": name }, "addressType": "IPv4", "endpoints": endpoints }))
            .expect("a slice")
    }

    #[test]
    fn slices_that_come_and_endpoints_that_leave_with_their_pods_alone_are_accepted() {
        let mut seen = Seen::default();
        seen.see(&slice("a", &["1", "2"]), false).expect("there was none before");
        assert_eq!(seen.roll(), 1);
        seen.see(&slice("a", &["1", "2", "3"]), false).expect("one more");
        seen.may_leave.insert("1".to_owned());
        seen.see(&slice("a", &["2", "3"]), false).expect("its pod was deleted");
        assert!(seen.see(&slice("a", &["1", "2", "3"]), false).is_err(), "it returns");
        assert!(seen.see(&slice("a", &["1", "3"]), false).is_err(), "the pod of 2 is there");
        assert!(seen.see(&slice("b", &[]), false).is_err(), "one more slice");
        assert!(seen.see(&slice("a", &["3"]), true).is_err(), "a slice is deleted");
    }
}
