//! A snapshot of all objects in a scenario's namespace, and waiting until they no longer change.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::wait::{PATIENCE, eventually_within};
use kube::ResourceExt;
use kube::api::ListParams;
use tokio::time::Instant;

use super::{Objects, is_controlled_by, is_ready, revision};

/// For how long nothing must have changed: many times what a controller takes to react to a change.
const QUIET: Duration = Duration::from_millis(350);

/// All deployments with what they own.
pub(super) struct State {
    pub(super) deployments: Vec<appsv1::Deployment>,
    pub(super) sets: Vec<appsv1::ReplicaSet>,
    pub(super) pods: Vec<corev1::Pod>,
    events: Vec<corev1::Event>,
}

impl State {
    pub(super) async fn read(objects: &Objects) -> Result<Self> {
        let all = ListParams::default();
        let (deployments, sets, pods, events) = futures::try_join!(
            objects.deployments.list(&all),
            objects.sets.list(&all),
            objects.pods.list(&all),
            objects.events.list(&all),
        )
        .context("cannot list what is there")?;
        Ok(Self { deployments: deployments.items, sets: sets.items, pods: pods.items, events: events.items })
    }

    /// Waits until every status agrees with the objects and nothing has changed for a while.
    pub(super) async fn quiet(objects: &Objects) -> Result<Self> {
        let mut last = BTreeMap::new();
        let mut since = Instant::now();
        eventually_within("everything to come to rest", PATIENCE, async || {
            let state = Self::read(objects).await?;
            let versions = state.all_versions();
            if versions != last {
                (last, since) = (versions, Instant::now());
            }
            for deployment in &state.deployments {
                state.statuses_agree(deployment)?;
            }
            ensure!(since.elapsed() >= QUIET, "something changed {} ms ago", since.elapsed().as_millis());
            Ok(state)
        })
        .await
    }

    pub(super) fn deployment(&self, name: &str) -> Result<&appsv1::Deployment> {
        let found = self.deployments.iter().find(|it| it.metadata.name.as_deref() == Some(name));
        found.with_context(|| format!("deployment {name} is gone"))
    }

    /// The sets of a deployment, by revision.
    pub(super) fn sets_of(&self, deployment: &appsv1::Deployment) -> Vec<&appsv1::ReplicaSet> {
        let mut sets: Vec<_> = self.sets.iter().filter(|set| is_controlled_by(*set, deployment)).collect();
        sets.sort_by_key(|set| (revision(*set), set.name_any()));
        sets
    }

    pub(super) fn pods_of(&self, set: &appsv1::ReplicaSet) -> Vec<&corev1::Pod> {
        self.pods.iter().filter(|pod| is_controlled_by(*pod, set)).collect()
    }

    /// The versions of a deployment, its sets, its pods and the events about any of them, by uid.
    pub(super) fn versions_of(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let deployment = self.deployment(name)?;
        let mut versions = BTreeMap::from([version(deployment)]);
        for set in self.sets_of(deployment) {
            versions.insert(version(set).0, version(set).1);
            versions.extend(self.pods_of(set).into_iter().map(version));
        }
        let about = |event: &&corev1::Event| {
            event.involved_object.uid.as_ref().is_some_and(|uid| versions.keys().any(|it| it.ends_with(uid.as_str())))
        };
        let events: Vec<_> = self.events.iter().filter(about).map(version).collect();
        versions.extend(events);
        Ok(versions)
    }

    fn all_versions(&self) -> BTreeMap<String, String> {
        let mut versions: BTreeMap<_, _> = self.deployments.iter().map(version).collect();
        versions.extend(self.sets.iter().map(version));
        versions.extend(self.pods.iter().map(version));
        versions.extend(self.events.iter().map(version));
        versions
    }

    /// Fails, naming the difference, unless every status counts the objects that exist.
    fn statuses_agree(&self, deployment: &appsv1::Deployment) -> Result<()> {
        let mut counted = [0; 3];
        for set in self.sets_of(deployment) {
            let name = set.name_any();
            let status = set.status.clone().unwrap_or_default();
            ensure!(status.observed_generation == set.metadata.generation, "{name} has not been observed");
            ensure!(Some(status.replicas) == set.spec.replicas, "{name} reports {} replicas", status.replicas);
            let pods = self.pods_of(set);
            let alive: Vec<_> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
            let ready = alive.iter().filter(|pod| is_ready(pod)).count();
            let running = alive.iter().filter(|pod| pod.spec.as_ref().is_some_and(|it| it.node_name.is_some())).count();
            ensure!(running == ready, "{name} has {running} pods on nodes, of which {ready} are ready");
            let reported = status.ready_replicas.unwrap_or_default();
            ensure!(usize::try_from(reported)? == ready, "{name} reports {reported} of {ready} ready pods");
            let available = status.available_replicas.unwrap_or_default();
            ensure!(available == reported, "{name} has {reported} ready and {available} available pods");
            counted = [counted[0] + status.replicas, counted[1] + reported, counted[2] + available];
        }
        let status = deployment.status.clone().unwrap_or_default();
        let name = deployment.name_any();
        ensure!(status.observed_generation == deployment.metadata.generation, "{name} has not been observed");
        let reported =
            [status.replicas, status.ready_replicas, status.available_replicas].map(Option::unwrap_or_default);
        ensure!(reported == counted, "{name} reports {reported:?} instead of {counted:?}");
        Ok(())
    }
}

/// An object by kind, name and uid, and its resource version.
fn version<K: kube::Resource<DynamicType = ()>>(object: &K) -> (String, String) {
    let meta = object.meta();
    let (name, uid) = (meta.name.clone().unwrap_or_default(), meta.uid.clone().unwrap_or_default());
    (format!("{} {name} {uid}", K::kind(&())), meta.resource_version.clone().unwrap_or_default())
}
