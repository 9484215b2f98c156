//! One manager replaces another while all pods of a service are replaced.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::discovery::v1 as discoveryv1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::takeover::end;
use super::published::{Published, Publishes};
use super::{apply, node, pod, service, status};

/// How many pods there are beyond those of the service while they are replaced.
const SURGE: u16 = 20;
const PORT: u16 = 8080;
const AT_ONCE: usize = 16;

/// From the peer to ours and back: no slice is created, renamed or deleted, and no endpoint is absent while its pod is there.
pub(super) async fn slices_are_handed_over(case: Case) -> Result<()> {
    // One of the slices always has room for a surge, so that there is no reason for a further one.
    let args = &["--max-endpoints-per-slice=225"];
    let rollout = Rollout { pods: 1_000, objects: 5, handed_over_in: [15, 32], args };
    rollout.run::<discoveryv1::EndpointSlice>(&case).await
}

/// From the peer to ours and back: the endpoints stay one object, and no address is absent while its pod is there.
pub(super) async fn endpoints_are_handed_over(case: Case) -> Result<()> {
    let rollout = Rollout { pods: 300, objects: 1, handed_over_in: [4, 9], args: &[] };
    rollout.run::<corev1::Endpoints>(&case).await
}

/// The replacement of all pods of a service.
struct Rollout {
    pods: u16,
    /// How many objects hold their addresses.
    objects: usize,
    /// The steps in which another manager takes over.
    handed_over_in: [u16; 2],
    /// The arguments of each manager.
    args: &'static [&'static str],
}

impl Rollout {
    async fn run<K>(&self, case: &Case) -> Result<()>
    where
        K: Publishes + kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let kubectl = Kubectl::of(case);
        let pods = Pods(case.api());
        apply(&kubectl, &node()).await?;
        pods.create(0..self.pods).await?;
        apply(&kubectl, &service("web", &json!({}))).await?;
        Published::watch(&case.api::<K>(), async |published| self.roll(case, &pods, published).await).await?;
        // No kubelet ends them, and kubectl deletes them one by one.
        pods.0.delete_collection(&DeleteParams::default().grace_period(0), &ListParams::default()).await?;
        Ok(())
    }

    async fn roll(&self, case: &Case, pods: &Pods, published: &Published) -> Result<()> {
        let mut manager = case.start(Subject::Peer, self.args)?;
        published.has_only((0..self.pods).map(address)).await?;
        published.keep(self.objects)?;
        let mut managers = [Subject::Ours, Subject::Peer].into_iter();
        for step in 0..self.pods / SURGE {
            let old = step * SURGE..(step + 1) * SURGE;
            let new = self.pods + old.start..self.pods + old.end;
            let half = new.start + SURGE / 2;
            pods.create(new.start..half).await?;
            if self.handed_over_in.contains(&step) {
                end(&mut manager).await?;
                // The next one has pods to add and pods to remove, however fast the last one was.
                pods.create(half..new.end).await?;
                pods.delete(old, published).await?;
                manager = case.start(managers.next().context("there are two")?, self.args)?;
                published.has(new.map(address)).await.with_context(|| format!("in step {step}"))?;
            } else {
                pods.create(half..new.end).await?;
                published.has(new.map(address)).await.with_context(|| format!("in step {step}"))?;
                pods.delete(old, published).await?;
            }
        }
        published.has_only((self.pods..2 * self.pods).map(address)).await?;
        manager.must_run()
    }
}

/// The address of a pod.
fn address(number: u16) -> SocketAddr {
    let [high, low] = number.to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(10, 9, high, low), PORT))
}

/// The pods, by numbers.
struct Pods(Api<corev1::Pod>);

impl Pods {
    /// Creates ready pods.
    async fn create(&self, numbers: Range<u16>) -> Result<()> {
        let made = stream::iter(numbers).map(async |number| {
            let name = format!("web-{number}");
            let made: corev1::Pod = serde_json::from_value(pod(&name, "web", PORT.into()))?;
            self.0.create(&PostParams::default(), &made).await.with_context(|| format!("cannot create {name}"))?;
            let ready: Value = serde_json::from_str(&status(&address(number).ip().to_string(), true))?;
            self.0.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await?;
            Ok(())
        });
        made.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Deletes pods, whose addresses may leave from now on.
    async fn delete(&self, numbers: Range<u16>, published: &Published) -> Result<()> {
        published.may_leave(numbers.clone().map(address));
        let deleted = stream::iter(numbers).map(async |number| {
            let name = format!("web-{number}");
            self.0.delete(&name, &DeleteParams::default().grace_period(0)).await.context(name)?;
            Ok(())
        });
        deleted.buffer_unordered(AT_ONCE).try_collect().await
    }
}
