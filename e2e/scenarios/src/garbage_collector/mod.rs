//! Garbage collection: what follows the deletion of an owner.

mod churn;
mod maps;
mod recorded;
mod table;
mod takeover;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

use self::maps::Maps;
use super::alone::Alone;

kcm_e2e_harness::scenarios! {
    Setup::of("garbagecollector").with_own_managers() => {
        "garbage-collector/follows_the_deletion_of_owners": follows_the_deletion_of_owners,
        "garbage-collector/collects_kinds_that_come_and_go": collects_kinds_that_come_and_go,
        "garbage-collector/reports_wrong_namespaces": reports_wrong_namespaces,
        "garbage-collector/keeps_what_has_a_living_owner": churn::keeps_what_has_a_living_owner,
    }
    Setup::of(CONTROLLERS).with_own_managers() => {
        "garbage-collector/table": table::holds,
    }
    Setup::of(CONTROLLERS).ours().with_own_managers() => {
        "garbage-collector/takes_over": takeover::takes_over,
        "garbage-collector/gives_back": takeover::gives_back,
    }
    Setup::of(CONTROLLERS).ours().exclusively() => {
        // A step is over when nothing has changed for a while: a busy machine would end it too early.
        "garbage-collector/acts_as_recorded": recorded::acts_as_recorded,
    }
    Setup::of("garbagecollector").ours().with_own_managers() => {
        "garbage-collector/needs_no_more_than_its_role": needs_no_more_than_its_role,
    }
}

/// What runs where namespaces are deleted too.
const CONTROLLERS: &str = "garbagecollector,namespace";

/// A child and a grandchild go with their owner in the background and in the foreground, and stay as orphans.
async fn follows_the_deletion_of_owners(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    let maps = Maps::of(&alone, "default");
    for (policy, left) in [
        (DeleteParams::background(), &[][..]),
        (DeleteParams::foreground(), &[]),
        (DeleteParams::orphan(), &["child", "grandchild"]),
    ] {
        let owner = maps.create("owner", None).await?;
        let child = maps.create("child", Some(&owner)).await?;
        maps.create("grandchild", Some(&child)).await?;
        maps.0.delete("owner", &policy).await?;
        maps.are(left).await?;
    }
    let child = maps.0.get("child").await?;
    ensure!(child.owner_references().is_empty(), "it has {:?}", child.owner_references());
    // An owner that never existed.
    let mut ghost = corev1::ConfigMap::default();
    ghost.metadata.name = Some("ghost".to_owned());
    ghost.metadata.uid = Some("11111111-2222-3333-4444-555555555555".to_owned());
    maps.create("orphaned", Some(&ghost)).await?;
    maps.are(&["child", "grandchild"]).await
}

/// Objects of a kind that is defined while the manager runs own others and are owned; they go with their definition.
async fn collects_kinds_that_come_and_go(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    let kubectl = alone.kubectl("default");
    alone.define_widgets().await?;
    let widget = |name: &str| json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name, "namespace": "default" } });
    for round in ["first", "second"] {
        alone.apply("default", &widget(round)).await?;
        let uid = kubectl.run(&format!("get widget {round} -o jsonpath={{.metadata.uid}}")).await?;
        let owned = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": format!("of-{round}"), "namespace": "default",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Widget", "name": round, "uid": uid.trim() }],
        } });
        alone.apply("default", &owned).await?;
    }
    let maps = Maps::of(&alone, "default");
    kubectl.run("delete widget first").await?;
    maps.are(&["of-second"]).await?;
    kubectl.run("delete crd widgets.example.com").await?;
    maps.are(&[]).await
}

/// A dependent whose owner is in another namespace goes, with a warning event; the owner stays.
async fn reports_wrong_namespaces(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    alone.kubectl("default").run("create namespace other").await?;
    let owner = Maps::of(&alone, "other").create("owner", None).await?;
    // So that the manager has seen it.
    let (here, there) = (Maps::of(&alone, "default"), Maps::of(&alone, "other"));
    let right = there.create("right", Some(&owner)).await?;
    eventually("the event of a wrong reference", async || {
        // The first ones may come before the manager has seen the owner, and go without an event.
        drop(here.create("wrong", Some(&owner)).await);
        let events: Api<corev1::Event> = Api::namespaced(alone.plane.client(), "default");
        let events = events.list(&ListParams::default().fields("reason=OwnerRefInvalidNamespace")).await?;
        let event = events.items.first().context("no event yet")?;
        let uid = owner.uid().unwrap_or_default();
        let expected = format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace \"default\""
        );
        ensure!(event.message.as_deref() == Some(&expected), "{:?}", event.message);
        Ok(())
    })
    .await?;
    here.are(&[]).await?;
    ensure!(there.0.get_opt(&right.name_any()).await?.is_some(), "the right dependent is gone");
    Ok(())
}

/// The manager, as the service account of the controller, is refused nothing.
async fn needs_no_more_than_its_role(case: Case) -> Result<()> {
    let alone = Alone::start_as(&case, "generic-garbage-collector").await?;
    let maps = Maps::of(&alone, "default");
    let owner = maps.create("owner", None).await?;
    maps.create("child", Some(&owner)).await?;
    maps.0.delete("owner", &DeleteParams::foreground()).await?;
    maps.are(&[]).await?;
    alone.is_refused_nothing()
}
