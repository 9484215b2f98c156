//! The same changes under the peer and under ours, with a comparison of all that follows from each.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kcm_e2e_harness::scenario::Case;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::PATIENCE;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::super::alone::Alone;
use super::maps::{HOLD, Maps, reference};

/// Families of config maps, each in a namespace of its own, with their changes, one in each round.
///
/// `x*<a! b` creates `x` with a finalizer, owned by `a`, which it blocks, and by `b`; `x?` with the finalizer for orphans.
/// `-x Foreground` deletes, `~x` removes the finalizer, `x+a!` adds an owner. `ghost` never existed, and an owner
/// `NAMESPACE/NAME` is in that namespace.
const SCRIPT: [(&str, &[&str]); 11] = [
    ("background", &["a", "x<a", "y<x!", "-a Background"]),
    ("foreground", &["a", "x<a!", "y<a", "z<x!", "-a Foreground"]),
    ("orphans", &["a", "x<a!", "y<x", "-a Orphan", "-x Background"]),
    ("held", &["a", "x*<a!", "y*<a", "-a Foreground", "~x", "~y"]),
    ("second-policy", &["a", "x*<a!", "-a Foreground", "-a Orphan", "~x"]),
    ("two-owners", &["a", "b", "x<a! b!", "-a Foreground", "-b Foreground"]),
    ("never-existed", &["x<ghost", "a", "y<a ghost!"]),
    ("cycle", &["a", "b<a!", "c<b!", "a+c!", "-a Foreground"]),
    ("own-policy", &["a", "x?<a", "y<x", "-a Background"]),
    ("owners-of-others", &["a"]),
    ("elsewhere", &["b", "x<owners-of-others/a", "y<b owners-of-others/a"]),
];

/// A round is over when nothing has changed for so long.
const QUIET: Duration = Duration::from_millis(2_500);

/// Ours does after each change what the peer did.
pub(super) async fn acts_as_recorded(case: Case) -> Result<()> {
    let theirs = play(&case, Subject::Peer).await.context("the peer plays")?;
    let ours = play(&case, case.subject()).await.context("we play")?;
    let mut differences = Vec::new();
    for (round, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        let lines = |of: &BTreeSet<String>, but: &BTreeSet<String>| of.difference(but).cloned().collect::<Vec<_>>();
        if theirs != ours {
            let (theirs, ours) = (lines(theirs, ours), lines(ours, theirs));
            differences.push(format!("round {}: theirs {theirs:#?}, ours {ours:#?}", round + 1));
        }
    }
    ensure!(differences.is_empty(), "they differ after these rounds:\n{}", differences.join("\n"));
    Ok(())
}

/// Plays the script under one manager, and returns what there is after each round.
async fn play(case: &Case, subject: Subject) -> Result<Vec<BTreeSet<String>>> {
    let alone = Alone::start_with(case, subject).await?;
    for (family, _) in &SCRIPT {
        alone.kubectl("default").run(&format!("create namespace {family}")).await?;
    }
    let mut stage = Stage { alone: &alone, names: BTreeMap::new() };
    // The first objects are seen before anything follows from them.
    stage.is_quiet().await?;
    let rounds = SCRIPT.iter().map(|(_, changes)| changes.len()).max().unwrap_or(0);
    let mut recorded = Vec::new();
    for round in 0..rounds {
        for (family, changes) in &SCRIPT {
            let Some(change) = changes.get(round) else { continue };
            stage.apply(family, change).await.with_context(|| format!("{family}: {change}"))?;
        }
        stage.is_quiet().await?;
        recorded.push(stage.record().await?);
    }
    Ok(recorded)
}

/// The objects of one play.
struct Stage<'a> {
    alone: &'a Alone,
    /// The names of objects as `NAMESPACE/NAME`, by uid.
    names: BTreeMap<String, String>,
}

impl Stage<'_> {
    async fn apply(&mut self, family: &str, change: &str) -> Result<()> {
        let maps = Maps::of(self.alone, family);
        if let Some((name, policy)) = change.strip_prefix('-').and_then(|rest| rest.split_once(' ')) {
            let policy = match policy {
                "Background" => DeleteParams::background(),
                "Foreground" => DeleteParams::foreground(),
                "Orphan" => DeleteParams::orphan(),
                other => bail!("{other} is no policy"),
            };
            return maps.delete(name, &policy).await;
        }
        if let Some(name) = change.strip_prefix('~') {
            return maps.release(name).await;
        }
        if let Some((name, owner)) = change.split_once('+') {
            let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": [self.owner(family, owner).await?] } }));
            maps.0.patch(name, &PatchParams::default(), &patch).await?;
            return Ok(());
        }
        let (name, named) = change.split_once('<').unwrap_or((change, ""));
        let mut owners = Vec::new();
        for owner in named.split_whitespace() {
            owners.push(self.owner(family, owner).await?);
        }
        let finalizers: &[&str] = match name.chars().last() {
            Some('*') => &[HOLD],
            Some('?') => &["orphan"],
            _ => &[],
        };
        let created = maps.create_with(name.trim_end_matches(['*', '?']), owners, finalizers).await?;
        self.names.insert(created.uid().unwrap_or_default(), format!("{family}/{}", created.name_any()));
        Ok(())
    }

    async fn owner(&self, family: &str, named: &str) -> Result<metav1::OwnerReference> {
        let (name, blocks) = (named.trim_end_matches('!'), named.ends_with('!'));
        if name == "ghost" {
            let mut ghost = corev1::ConfigMap::default();
            ghost.metadata.name = Some(name.to_owned());
            ghost.metadata.uid = Some("11111111-2222-3333-4444-555555555555".to_owned());
            return Ok(reference(&ghost, blocks));
        }
        let (namespace, name) = name.split_once('/').unwrap_or((family, name));
        Ok(reference(&Maps::of(self.alone, namespace).0.get(name).await?, blocks))
    }

    /// The config maps of all families.
    async fn maps(&self) -> Result<Vec<corev1::ConfigMap>> {
        let mut all =
            Api::<corev1::ConfigMap>::all(self.alone.plane.client()).list(&ListParams::default()).await?.items;
        all.retain(|map| SCRIPT.iter().any(|(family, _)| map.namespace().as_deref() == Some(family)));
        Ok(all)
    }

    /// Waits until nothing has changed for [`QUIET`].
    async fn is_quiet(&self) -> Result<()> {
        let start = Instant::now();
        let (mut since, mut last) = (Instant::now(), Vec::new());
        while since.elapsed() < QUIET {
            ensure!(start.elapsed() < PATIENCE, "it never comes to rest: {last:?}");
            let now: Vec<_> = self.maps().await?.iter().map(|it| (it.uid(), it.resource_version())).collect();
            if now != last {
                (since, last) = (Instant::now(), now);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// What there is, in lines without uids and times.
    async fn record(&self) -> Result<BTreeSet<String>> {
        let mut lines = BTreeSet::new();
        for map in self.maps().await? {
            let owner = |it: &metav1::OwnerReference| {
                let blocks = if it.block_owner_deletion == Some(true) { "!" } else { "" };
                format!("{}{blocks}", it.name)
            };
            let owners: Vec<String> = map.owner_references().iter().map(owner).collect();
            let deleted = map.metadata.deletion_timestamp.is_some();
            let (namespace, name) = (map.namespace().unwrap_or_default(), map.name_any());
            lines.insert(format!("{namespace}/{name} of {owners:?}, {:?}, deleted {deleted}", map.finalizers()));
        }
        let events: Api<corev1::Event> = Api::all(self.alone.plane.client());
        let of_owners = ListParams::default().fields("reason=OwnerRefInvalidNamespace");
        for event in events.list(&of_owners).await? {
            let about = &event.involved_object;
            let uid = about.uid.clone().unwrap_or_default();
            let mut message = event.message.unwrap_or_default();
            for (uid, name) in &self.names {
                message = message.replace(uid.as_str(), name);
            }
            let component = event.source.and_then(|source| source.component).unwrap_or_default();
            let name = self.names.get(&uid).cloned().unwrap_or_default();
            let kind = about.kind.as_deref().unwrap_or_default();
            lines.insert(format!("{component} about {kind} {name}: {} {message}", event.type_.unwrap_or_default()));
        }
        Ok(lines)
    }
}
