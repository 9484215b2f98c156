//! Playing a script on two or three control planes at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use futures::future::try_join_all;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::ScriptFile;
use super::compare::{differences, stale};
use super::line::{self, Line};
use super::metrics::Metrics;
use super::read::Script;
use super::record::{Names, Objects, Record, UID};
use crate::audit::forbidden;
use crate::clock;
use crate::control_plane::{ControlPlane, Options};
use crate::kubectl::Kubectl;
use crate::manager_log::findings;
use crate::process::Process;
use crate::scenario::start_manager;
use crate::subject::Subject;
use crate::wait::{PATIENCE, throughout};

/// A change has had its effect when nothing else has changed for so long.
const QUIET: Duration = Duration::from_secs(1);

/// As [`QUIET`], when a manager has just been started: its caches fill first, within half a second on a busy machine.
const STARTED: Duration = Duration::from_millis(2_500);

/// Time between two readings of all objects, which cost the API servers more than the managers do.
const POLL: Duration = Duration::from_millis(200);

/// How long control planes may differ after a round.
const SAME: Duration = Duration::from_secs(30);

/// For how long a new manager must not write what is at rest.
const REST: Duration = Duration::from_secs(3);

/// Plays a script; see [the page](super).
///
/// # Errors
///
/// If the script has a mistake, a change cannot be made, or the control planes differ after a round.
pub async fn play(file: &ScriptFile) -> Result<()> {
    let script = file.read().map_err(Error::msg)?;
    let managers = [Managers::Theirs, Managers::Ours, Managers::InTurns];
    let managers = managers.into_iter().filter(|it| *it != Managers::InTurns || script.takeover.is_some());
    let mut players = try_join_all(managers.map(|it| Player::start(&script, it))).await?;
    if let Err(error) = play_rounds(&script, &mut players).await {
        let kept = players.iter_mut().map(|player| {
            player.plane.keep_logs();
            format!("{}: {}", player.managers.name(), player.plane.logs().display())
        });
        let kept: Vec<String> = kept.collect();
        return Err(error).with_context(|| format!("logs of {}", kept.join(", ")));
    }
    Ok(())
}

async fn play_rounds(script: &Script, players: &mut [Player<'_>]) -> Result<()> {
    let mut seen = Record::new();
    if !script.prepare.is_empty() {
        seen.extend(are_alike(script, players).await.context("before the first round")?);
    }
    for (at, lines) in script.rounds.iter().enumerate() {
        let number = at + 1;
        try_join_all(players.iter_mut().map(|player| player.round(number, lines))).await?;
        let record = are_alike(script, players).await.with_context(|| {
            let lines: Vec<&str> = lines.iter().map(Line::text).collect();
            format!("after round {number}:\n  {}", lines.join("\n  "))
        })?;
        seen.extend(record);
    }
    for player in players {
        player.end().await?;
        let refused = forbidden(&player.plane.audited()?);
        ensure!(refused.is_empty(), "{}: {refused:?}", player.managers.name());
    }
    let stale = stale(script, &seen);
    ensure!(stale.is_empty(), "`differs` has what no line is like: {stale:?}");
    Ok(())
}

/// Waits until all players have come to rest in the same state, and returns what all of them have recorded.
async fn are_alike(script: &Script, players: &mut [Player<'_>]) -> Result<Record> {
    let start = Instant::now();
    let (mut since, mut last) = (start, Vec::new());
    loop {
        let now = try_join_all(players.iter_mut().map(Player::record)).await?;
        if now != last {
            (since, last) = (Instant::now(), now);
        }
        let differing: Vec<String> = players[1..]
            .iter()
            .zip(&last[1..])
            .filter_map(|(player, (record, _))| {
                let (theirs, others) = differences(script, &last[0].0, record);
                let differs = !theirs.is_empty() || !others.is_empty();
                differs.then(|| format!("theirs {theirs:#?}\n{} {others:#?}", player.managers.name()))
            })
            .collect();
        let quiet = if players.iter().any(|player| player.has_started) { STARTED } else { QUIET };
        let is_behind = last.iter().any(|(_, is_behind)| *is_behind);
        if since.elapsed() >= quiet && differing.is_empty() && !is_behind {
            return Ok(last.into_iter().flat_map(|(record, _)| record).collect());
        }
        if start.elapsed() >= SAME {
            ensure!(differing.is_empty(), "they differ: {}", differing.join("\n"));
            bail!("they do not come to rest");
        }
        sleep(POLL).await;
    }
}

/// The managers of a player.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Managers {
    Theirs,
    Ours,
    /// Theirs first, then by turns.
    InTurns,
}

impl Managers {
    const fn name(self) -> &'static str {
        match self {
            Self::Theirs => "theirs",
            Self::Ours => "ours",
            Self::InTurns => "in turns",
        }
    }
}

/// A control plane on which a script is played.
struct Player<'a> {
    script: &'a Script,
    managers: Managers,
    // Dropped in this order: the manager uses the API server.
    manager: Option<Process>,
    /// How many managers were started.
    started: usize,
    /// One was started in this round.
    has_started: bool,
    names: Names,
    metrics: Option<Metrics>,
    plane: ControlPlane,
}

impl<'a> Player<'a> {
    async fn start(script: &'a Script, managers: Managers) -> Result<Self> {
        let api_server_args = script.api_server_args.clone();
        let plane = ControlPlane::start(Options { strict: true, api_server_args, ..Options::default() }).await?;
        let names = Names::of(&std::fs::read_to_string(plane.logs().join("pki/ca.crt"))?);
        let mut player =
            Self { script, managers, manager: None, started: 0, has_started: false, names, metrics: None, plane };
        for namespace in &script.namespaces {
            let kubectl = player.kubectl(namespace);
            if !["default", "kube-public", "kube-system"].contains(&namespace.as_str()) {
                kubectl.run(&format!("create namespace {namespace}")).await?;
            }
            kubectl.run("create serviceaccount default").await?;
        }
        if script.metrics {
            player.metrics = Some(Metrics::start(&player.kubectl("default"), player.plane.logs()).await?);
        }
        player.make(script.prepare.iter()).await.context("before the first manager")?;
        if !script.restarts {
            player.start_next()?;
        }
        Ok(player)
    }

    fn kubectl<'b>(&'b self, namespace: &'b str) -> Kubectl<'b> {
        Kubectl { kubeconfig: self.plane.kubeconfig(), namespace, folder: self.plane.logs() }
    }

    /// The subject of the last manager.
    fn subject(&self) -> Subject {
        match self.managers {
            Managers::Theirs => Subject::Peer,
            Managers::InTurns if !self.started.is_multiple_of(2) => Subject::Peer,
            Managers::InTurns | Managers::Ours => Subject::Ours,
        }
    }

    fn start_next(&mut self) -> Result<()> {
        self.started += 1;
        let subject = self.subject();
        self.has_started = true;
        let name = format!("{}-{subject}-{}", self.script.name, self.started);
        let pki = self.plane.logs().join("pki").display().to_string();
        let args: Vec<String> = self.script.args.iter().map(|flag| flag.replace("<pki>", &pki)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.manager = Some(start_manager(&self.plane, subject, &name, &self.script.controllers, &args)?);
        Ok(())
    }

    /// Ends the manager; leader election lets the next one start after that.
    async fn end(&mut self) -> Result<()> {
        if let Some(mut manager) = self.manager.take() {
            manager.must_run()?;
            manager.terminate()?;
            manager.wait(PATIENCE).await?;
            if self.subject() == Subject::Ours {
                let log = std::fs::read_to_string(manager.log()).context("cannot read a manager's log")?;
                let found = findings(&log, &[]);
                ensure!(found.is_empty(), "our manager logged {found:?}");
            }
        }
        Ok(())
    }

    /// Makes the changes of a round.
    async fn round(&mut self, number: usize, lines: &[Line]) -> Result<()> {
        let managers = self.managers;
        let takeover = self.script.takeover.as_ref().filter(|_| managers == Managers::InTurns);
        let is_at_rest = takeover.is_some_and(|it| it.at_rest.contains(&number));
        let is_amid = takeover.is_some_and(|it| it.amid.contains(&number)) || self.script.restarts;
        self.has_started &= number == 1;
        let made = async {
            if is_at_rest {
                self.is_taken_over_at_rest().await?;
            }
            if is_amid {
                self.end().await?;
                self.make(lines.iter().filter(|line| !line.is_wait())).await?;
                self.start_next()?;
                self.make(lines.iter().filter(|line| line.is_wait())).await
            } else {
                self.make(lines.iter()).await
            }
        };
        made.await.with_context(|| format!("round {number} of {}", managers.name()))
    }

    async fn is_taken_over_at_rest(&mut self) -> Result<()> {
        self.end().await?;
        let (client, script) = (self.plane.client(), self.script);
        let at_rest = async || {
            let mut versions = Objects::read(&client, script).await?.versions();
            versions.retain(|name, _| !script.restless.contains(name));
            Ok::<_, Error>(versions)
        };
        let before = at_rest().await?;
        self.start_next()?;
        throughout("the next manager writes nothing", REST, async || {
            let after = at_rest().await?;
            let line = |(name, version): &(&String, &String)| format!("{name} {version}");
            let [before, after]: [BTreeSet<String>; 2] =
                [&before, &after].map(|it| it.iter().map(|it| line(&it)).collect());
            let written: Vec<_> = before.symmetric_difference(&after).collect();
            ensure!(written.is_empty(), "it wrote {written:?}");
            Ok(())
        })
        .await?;
        // Its caches have been filled meanwhile.
        self.has_started = false;
        Ok(())
    }

    async fn make(&self, lines: impl Iterator<Item = &Line>) -> Result<()> {
        let objects = Objects::read(&self.plane.client(), self.script).await?;
        let namespace = &self.script.namespaces[0];
        let kubectl = self.kubectl(namespace);
        let (mut names, mut used) = (BTreeMap::new(), BTreeSet::new());
        for (file, object) in &self.script.manifests {
            names.insert(file.clone(), kubectl.manifest(object)?);
        }
        let needs_uids = |line: &Line| {
            let manifests = line.text().split_whitespace().filter_map(|word| self.script.manifests.get(word));
            line.text().contains(UID) || manifests.into_iter().any(|it| it.to_string().contains(UID))
        };
        let mut lines = lines.peekable();
        while let Some(line) = lines.next() {
            let with_uids =
                if needs_uids(line) { Some(Objects::read(&self.plane.client(), self.script).await?) } else { None };
            if let Some(objects) = &with_uids {
                for (file, object) in &self.script.manifests {
                    let object = serde_json::from_str(&objects.with_uids(&object.to_string()))?;
                    names.insert(file.clone(), kubectl.manifest(&object)?);
                }
            }
            for (word, controller, key) in line.selectors() {
                let found = objects.dependent(namespace, controller, key, &used);
                let found = found.with_context(|| format!("there is no {word} for `{}`", line.text()))?;
                names.insert(word.to_owned(), found.to_owned());
                used.insert(found.to_owned());
            }
            if let Some((metric, value)) = line.metric() {
                let metrics = self.metrics.as_ref().context("the script has no `metrics: true`")?;
                metrics.set(metric, value)?;
                continue;
            }
            if let Some(change) = line.change(clock::now(), namespace, &names) {
                let answer = self.plane.client().request::<Value>(change.request()?).await;
                match answer {
                    Ok(_) if !line.is_refused() => {}
                    Err(kube::Error::Api(refusal))
                        if line.is_refused() && refusal.message.contains("disruption budget") => {}
                    other => bail!("`{}`: {other:?}", line.text()),
                }
                continue;
            }
            if let Some((kind, name)) = line.owner() {
                let owner = kubectl.run(&format!("get {kind} {name} -o json")).await?;
                names.insert(line::OWNER.to_owned(), owner);
            }
            let mut command = line.command(&names)?;
            // A process for each of many objects would take longer than all else.
            while let Some(next) = lines.next_if(|next| line.is_create() && next.is_create() && !needs_uids(next)) {
                command.extend(next.command(&names)?.into_iter().skip(1));
            }
            if let Some(objects) = &with_uids {
                for word in &mut command {
                    *word = objects.with_uids(word);
                }
            }
            kubectl.run_words(&command).await?;
        }
        Ok(())
    }

    /// What there is, and whether a controller has work that it knows of.
    async fn record(&mut self) -> Result<(Record, bool)> {
        let objects = Objects::read(&self.plane.client(), self.script).await?;
        Ok((self.names.record(&objects, self.script), objects.are_behind(self.script)))
    }
}
