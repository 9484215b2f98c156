//! One manager replaces another, at rest and amid deletions.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{eventually, throughout};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use super::super::alone::Alone;
use super::maps::{HOLD, Maps, waits};

/// For how long objects at rest must not be written: longer than the wait for finalizers in a namespace.
const REST: Duration = Duration::from_secs(20);

/// The objects that nothing is to be done about until their finalizers are removed.
const HELD: [&str; 7] = ["bottom", "child", "kept", "kept-child", "middle", "parent", "top"];

/// Ours ends what upstream's manager has begun.
pub(super) async fn takes_over(case: Case) -> Result<()> {
    is_handed_over(&case, Subject::Peer, case.subject()).await
}

/// Upstream's ends what our manager has begun.
pub(super) async fn gives_back(case: Case) -> Result<()> {
    is_handed_over(&case, case.subject(), Subject::Peer).await
}

async fn is_handed_over(case: &Case, from: Subject, to: Subject) -> Result<()> {
    let mut alone = Alone::start_with(case, from).await?;
    begin(&alone).await.with_context(|| format!("{from} is to begin"))?;
    alone.end_manager().await?;
    let maps = Maps::of(&alone, "default");
    // What comes between the two is the work of the next.
    maps.delete("background", &DeleteParams::background()).await?;
    maps.delete("orphaning", &DeleteParams::orphan()).await?;
    let before = versions(&alone).await?;

    alone.start_manager(case, to)?;
    eventually("what came between to be done", async || {
        let left: Vec<String> = maps.list().await?.iter().map(ResourceExt::name_any).collect();
        let [expected, orphan] = [&HELD[..], &["orphan"]];
        let mut expected: Vec<&str> = expected.iter().chain(orphan).copied().collect();
        expected.sort_unstable();
        ensure!(left == expected, "there are {left:?}");
        Ok(())
    })
    .await
    .with_context(|| format!("{to} is to begin"))?;
    throughout("nothing at rest is written", REST, async || {
        let after = versions(&alone).await?;
        ensure!(before == after, "{to} wrote: before {before:#?}, after {after:#?}");
        Ok(())
    })
    .await?;

    for name in ["child", "bottom"] {
        maps.release(name).await?;
    }
    // It goes after its dependents.
    eventually("the dependents of the chain to go", async || {
        ensure!(maps.0.get_opt("bottom").await?.is_none(), "the bottom is there");
        Ok(())
    })
    .await?;
    maps.release("middle").await?;
    Maps::of(&alone, "shop").release("held").await?;
    maps.are(&["kept", "kept-child", "orphan"]).await.with_context(|| format!("{to} is to end"))?;
    is_gone(&alone).await.with_context(|| format!("{to} is to end"))?;
    let kept = versions(&alone).await?;
    ensure!(kept.iter().all(|(name, version)| before.get(name) == Some(version)), "{to} wrote {kept:#?}");
    let orphan = maps.0.get("orphan").await?;
    ensure!(orphan.owner_references().is_empty(), "it has {:?}", orphan.owner_references());
    Ok(())
}

/// Creates objects at rest, and deletions that finalizers hold up halfway.
async fn begin(alone: &Alone) -> Result<()> {
    let maps = Maps::of(alone, "default");
    let kept = maps.create("kept", None).await?;
    maps.create("kept-child", Some(&kept)).await?;

    let parent = maps.create("parent", None).await?;
    maps.create_held("child", Some(&parent)).await?;
    maps.create("free-child", Some(&parent)).await?;

    let top = maps.create("top", None).await?;
    let middle = maps.create_held("middle", Some(&top)).await?;
    maps.create_held("bottom", Some(&middle)).await?;

    let background = maps.create("background", None).await?;
    maps.create("background-child", Some(&background)).await?;
    let orphaning = maps.create("orphaning", None).await?;
    maps.create("orphan", Some(&orphaning)).await?;

    let kubectl = alone.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    let shop = Maps::of(alone, "shop");
    shop.create_held("held", None).await?;
    shop.create("free", None).await?;
    kubectl.run("create secret generic free").await?;

    maps.delete("parent", &DeleteParams::foreground()).await?;
    maps.delete("top", &DeleteParams::foreground()).await?;
    kubectl.run("delete namespace shop --wait=false").await?;
    eventually("the deletions to wait for finalizers", async || {
        ensure!(maps.0.get_opt("free-child").await?.is_none(), "the free child is there");
        for name in ["parent", "top", "middle"] {
            ensure!(waits(&maps.0.get(name).await?), "{name} does not wait");
        }
        for name in ["child", "bottom"] {
            ensure!(maps.0.get(name).await?.metadata.deletion_timestamp.is_some(), "{name} is not deleted");
        }
        let namespace = Api::<corev1::Namespace>::all(alone.plane.client()).get("shop").await?;
        let conditions = namespace.status.and_then(|status| status.conditions).unwrap_or_default();
        let names = |it: &corev1::NamespaceCondition| it.message.as_ref().is_some_and(|it| it.contains(HOLD));
        ensure!(conditions.iter().any(names), "the finalizer is not named: {conditions:?}");
        Ok(())
    })
    .await
}

/// The resource versions of everything that is at rest.
async fn versions(alone: &Alone) -> Result<BTreeMap<String, String>> {
    let version = |name: &str, version: Option<String>| (name.to_owned(), version.unwrap_or_default());
    let maps = Maps::of(alone, "default").list().await?;
    let of_default = maps.iter().filter(|map| HELD.contains(&map.name_any().as_str()));
    let of_default = of_default.map(|map| version(&map.name_any(), map.resource_version()));
    let of_shop = Maps::of(alone, "shop").list().await?;
    let of_shop = of_shop.iter().map(|map| version(&format!("shop/{}", map.name_any()), map.resource_version()));
    let namespace = Api::<corev1::Namespace>::all(alone.plane.client()).get_opt("shop").await?;
    let namespace = namespace.into_iter().map(|it| version("namespace shop", it.resource_version()));
    Ok(of_default.chain(of_shop).chain(namespace).collect())
}

async fn is_gone(alone: &Alone) -> Result<()> {
    eventually("the namespace to be gone", async || {
        let namespaces: Api<corev1::Namespace> = Api::all(alone.plane.client());
        ensure!(namespaces.get_opt("shop").await?.is_none(), "it is there");
        Ok(())
    })
    .await
}
