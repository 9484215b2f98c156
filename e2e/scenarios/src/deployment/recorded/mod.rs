//! The same sixty changes under the peer and under ours, with a comparison of all that follows from each.

mod explained;
mod script;
mod times;
mod track;

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::DeleteParams;

use self::script::{CHANGES_EACH, SCRIPT};
use self::times::next_second;
use self::track::Track;
use super::state::State;
use super::watch::{follow, now};
use super::{Objects, held, is_waiting, revision};

const REPLICAS: usize = 4;

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let objects = Objects::of(&case);
    let theirs = play(&case, &objects, Subject::Peer).await.context("the peer plays")?;
    clear(&objects).await?;
    let ours = play(&case, &objects, case.subject()).await.context("we play")?;
    clear(&objects).await?;
    let mut differences = Vec::new();
    for (name, theirs) in &theirs {
        let ours = ours.get(name).with_context(|| format!("{name} was not played"))?;
        differences.extend(theirs.difference(ours).map(|it| format!("{name}: {it}")));
    }
    if differences.is_empty() {
        return Ok(());
    }
    for (whose, tracks) in [("theirs", theirs), ("ours", ours)] {
        let recordings: Vec<String> = tracks.iter().map(|(name, track)| format!("{name}\n{track}\n")).collect();
        std::fs::write(case.plane().logs().join(format!("recorded-{whose}.txt")), recordings.concat())?;
    }
    bail!(
        "{} deployments differ (the recordings are in recorded-*.txt):\n{}",
        differences.len(),
        differences.join("\n")
    )
}

/// Runs the script under one manager. Pods run one at a time, so that the next step is determined.
async fn play(case: &Case, objects: &Objects, subject: Subject) -> Result<BTreeMap<String, Track>> {
    let mut manager = case.start(subject, &[])?;
    let events_seen = RefCell::new(Vec::new());
    let since = now(&objects.events).await?;
    let record = |event: &corev1::Event, gone: bool| {
        if !gone {
            events_seen.borrow_mut().push(event.clone());
        }
        Ok(())
    };
    let tracks = tokio::select! {
        broken = follow(&objects.events, since, record) => broken.and_then(|()| bail!("the watch of events ended")),
        tracks = perform(objects, &events_seen) => tracks,
    }?;
    manager.must_run()?;
    Ok(tracks)
}

async fn perform(objects: &Objects, events_seen: &RefCell<Vec<corev1::Event>>) -> Result<BTreeMap<String, Track>> {
    for (name, _) in &SCRIPT {
        objects.create(held(name, REPLICAS)).await?;
    }
    for (name, _) in &SCRIPT {
        objects.complete_held(name).await?;
    }
    let mut tracks = BTreeMap::new();
    let state = State::quiet(objects).await?;
    next_second(&state).await;
    let first = std::mem::take(&mut *events_seen.borrow_mut());
    for (name, _) in &SCRIPT {
        let mut track = Track::default();
        track.count(state.deployment(name)?, &first);
        track.record(&state, name, &[])?;
        tracks.insert((*name).to_owned(), track);
    }
    for round in 0..CHANGES_EACH {
        for (name, steps) in &SCRIPT {
            objects.patch(name, &steps[round].change.patch()).await?;
            tracks.get_mut(*name).context("it has a track")?.begin(steps[round]);
        }
        for turn in 0.. {
            let state = State::quiet(objects).await?;
            let events = std::mem::take(&mut *events_seen.borrow_mut());
            for (name, track) in &mut tracks {
                track.record(&state, name, &events)?;
            }
            next_second(&state).await;
            let mut ran = false;
            for (name, steps) in &SCRIPT {
                if turn < steps[round].pods
                    && let Some(pod) = next_pod(&state, name)?
                {
                    objects.run(pod).await?;
                    ran = true;
                }
            }
            if !ran {
                break;
            }
            ensure!(turn < 40, "the rollouts of round {round} do not end");
        }
    }
    Ok(tracks)
}

/// The pod that runs next: a waiting one of the newest set that has any.
fn next_pod<'a>(state: &'a State, name: &str) -> Result<Option<&'a corev1::Pod>> {
    let mut sets = state.sets_of(state.deployment(name)?);
    sets.sort_by_key(|set| std::cmp::Reverse(revision(*set)));
    Ok(sets.iter().find_map(|set| state.pods_of(set).into_iter().find(|pod| is_waiting(pod))))
}

/// Deletes all deployments with their pods.
async fn clear(objects: &Objects) -> Result<()> {
    for deployment in objects.deployments.list(&kube::api::ListParams::default()).await? {
        objects.deployments.delete(&deployment.name_any(), &DeleteParams::default()).await?;
    }
    eventually("nothing to be left", async || {
        let state = State::read(objects).await?;
        let left = (state.deployments.len(), state.sets.len(), state.pods.len());
        ensure!(left == (0, 0, 0), "deployments, sets, pods: {left:?}");
        Ok(())
    })
    .await
}
