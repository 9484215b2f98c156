//! Owners and dependents that come and go at random, and a watcher that looks for the loss of objects with a living owner.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::DeleteParams;

use super::super::alone::Alone;
use super::super::deployment::watch::{follow, now};
use super::maps::{Maps, reference, waits};

/// How many changes there are.
const CHANGES: usize = 250;

/// Whatever happens to owners, no object goes that has one which exists, and none stays that has none.
pub(super) async fn keeps_what_has_a_living_owner(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    let maps = Maps::of(&alone, "default");
    let watcher = RefCell::new(Watcher::default());
    let since = now(&maps.0).await?;
    tokio::select! {
        broken = follow(&maps.0, since, |map, gone| watcher.borrow_mut().see(map, gone)) => broken,
        done = churn(&maps) => done,
    }?;
    let lost = watcher.borrow().lost;
    ensure!(lost > 20, "only {lost} dependents were collected");
    Ok(())
}

/// The config maps that exist, by their uids, as the events of one watch have shown them.
#[derive(Default)]
struct Watcher {
    there: BTreeMap<String, corev1::ConfigMap>,
    /// How many dependents went.
    lost: usize,
}

impl Watcher {
    /// The events of all config maps come in the order of the changes.
    fn see(&mut self, map: &corev1::ConfigMap, gone: bool) -> Result<()> {
        let uid = map.uid().unwrap_or_default();
        if !gone {
            self.there.insert(uid, map.clone());
            return Ok(());
        }
        self.there.remove(&uid);
        self.lost += usize::from(!map.owner_references().is_empty());
        let living = map.owner_references().iter().filter_map(|owner| self.there.get(&owner.uid));
        let living = living.into_iter().find(|owner| !waits(owner));
        ensure!(living.is_none(), "{map:?} went, and its owner exists: {living:?}");
        Ok(())
    }
}

async fn churn(maps: &Maps) -> Result<()> {
    let mut random = Rng::with_seed(7);
    for number in 0..CHANGES {
        change(maps, &mut random, number).await?;
        tokio::time::sleep(Duration::from_millis(random.u64(0..60))).await;
    }
    eventually("every owner that is named to exist", async || {
        let all = maps.list().await?;
        for map in &all {
            ensure!(map.metadata.deletion_timestamp.is_none(), "{} is being deleted", map.name_any());
            let is_there = |uid: &str| all.iter().any(|it| it.uid().as_deref() == Some(uid));
            let absent = map.owner_references().iter().find(|owner| !is_there(&owner.uid));
            ensure!(absent.is_none(), "{} names {absent:?}", map.name_any());
        }
        Ok(())
    })
    .await
}

/// One change: an owner is made, made again under its name, or deleted; or it gets a dependent, perhaps with a second
/// owner.
async fn change(maps: &Maps, random: &mut Rng, number: usize) -> Result<()> {
    let name = format!("owner-{}", random.u8(0..5));
    let Some(owner) = maps.0.get_opt(&name).await? else { return maps.create(&name, None).await.map(drop) };
    if owner.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    match random.u8(0..6) {
        0 => {
            let policies = [DeleteParams::background(), DeleteParams::foreground(), DeleteParams::orphan()];
            maps.delete(&name, &policies[random.usize(0..3)]).await
        }
        1 => {
            maps.delete(&name, &DeleteParams::background()).await?;
            maps.create(&name, None).await.map(drop)
        }
        _ => {
            let mut owners = vec![reference(&owner, random.bool())];
            let second = format!("owner-{}", random.u8(0..5));
            if second != name
                && let Some(second) = maps.0.get_opt(&second).await?
            {
                owners.push(reference(&second, random.bool()));
            }
            maps.create_with(&format!("dependent-{number}"), owners).await.map(drop)
        }
    }
}
