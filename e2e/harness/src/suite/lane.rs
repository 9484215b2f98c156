//! A control plane with helpers, and the scenarios that run on it. What authorization refuses to our managers fails it.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1 as corev1;
use kube::api::{Api, DeleteParams, PostParams};
use tokio::time::Instant;

use super::plan::{On, Outcome};
use super::work::{Shared, Work};
use crate::audit::forbidden;
use crate::control_plane::{ApiServer, ControlPlane, Options};
use crate::manager_log::{Finding, findings};
use crate::process::Process;
use crate::scenario::{Case, Runs, Scenario, Selected, start_manager};
use crate::subject::Subject;
use crate::wait::{PATIENCE, eventually};
use crate::{helpers, nodes};

/// The controllers that scenarios need beside those under test.
const HELPERS: [&str; 4] =
    ["namespace-controller", "garbage-collector-controller", "resourcequota-controller", "serviceaccount-controller"];

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_mins(4);

/// How many nodes there are.
const NODES: usize = 3;

/// How many scenarios share a manager at a time.
const AT_ONCE: usize = 4;

/// A control plane, its helpers, and what became of the scenarios so far.
pub(super) struct Lane<'a> {
    // Dropped in this order: the helpers use the API server.
    helpers: Vec<Process>,
    plane: Rc<ControlPlane>,
    on: On,
    outcome: Outcome,
    report: &'a dyn Fn(&str),
}

impl<'a> Lane<'a> {
    /// Starts a control plane with nodes and helpers.
    pub(super) async fn start(on: On, number: usize, report: &'a dyn Fn(&str)) -> Result<Self> {
        let started = Instant::now();
        let plane = match on {
            On::ControlPlane | On::OlderControlPlane => {
                let api_server = if on == On::OlderControlPlane { ApiServer::Older } else { ApiServer::Current };
                let options = Options { scheduler: true, kwok: true, strict: true, api_server, ..Options::default() };
                ControlPlane::start(options).await?
            }
            On::Sandbox => ControlPlane::sandbox(NODES).await?,
        };
        let mut lane = Self { helpers: Vec::new(), plane: Rc::new(plane), on, outcome: Outcome::default(), report };
        let helped = match on {
            On::ControlPlane | On::OlderControlPlane => {
                let ready = nodes::create(&lane.plane.client(), "node", NODES).await;
                ready.and_then(|()| helpers::start(&lane.plane, &HELPERS))
            }
            // A sandbox comes with nodes.
            On::Sandbox => helpers::start_ours(&lane.plane, &HELPERS),
        };
        match helped {
            Ok(helpers) => lane.helpers = helpers,
            Err(error) => {
                lane.keep_logs()?;
                return Err(error);
            }
        }
        report(&format!("set up control plane {number} ({:.1} s)", started.elapsed().as_secs_f64()));
        Ok(lane)
    }

    /// Runs the scenarios beside which nothing else may run.
    pub(super) async fn run_undisturbed(&mut self, work: &Work) {
        for shared in &work.shared {
            if let Err(error) = self.run_shared(shared).await {
                let Shared { subject, controllers, .. } = shared;
                self.fail(&format!("{subject}/manager of {controllers}: {error:#}"));
            }
        }
        for &it in &work.exclusive {
            self.run_one(it, None).await;
        }
    }

    /// Runs the scenarios of a queue that other lanes take from too, one at a time.
    pub(super) async fn run_queue(&mut self, queue: &RefCell<VecDeque<Selected>>) {
        loop {
            let next = queue.borrow_mut().pop_front();
            let Some(it) = next else { return };
            self.run_one(it, None).await;
        }
    }

    /// Ends the control plane, whose logs are kept if anything has failed.
    pub(super) fn end(mut self) -> Result<Outcome> {
        let mut alive = self.helpers.iter_mut().try_for_each(Process::must_run);
        // Ends here, while the API server that it uses still runs.
        self.helpers.clear();
        if self.on == On::Sandbox {
            let log = self.plane.logs().join("sandbox.log");
            for finding in findings(&read(&log)?, &[]) {
                self.fail(&format!("the sandbox logged {finding}"));
            }
        }
        for (request, count) in forbidden(&self.plane.audited()?) {
            self.fail(&format!("{request} (asked {count} times)"));
        }
        let plane = Rc::get_mut(&mut self.plane).context("a scenario must not outlive the run")?;
        alive = alive.and_then(|()| plane.must_run());
        if self.outcome.failed > 0 || alive.is_err() {
            self.keep_logs()?;
        }
        alive.map(|()| self.outcome)
    }

    fn keep_logs(&mut self) -> Result<()> {
        let plane = Rc::get_mut(&mut self.plane).context("a scenario must not outlive the run")?;
        plane.keep_logs();
        (self.report)(&format!("logs are kept in {}", plane.logs().display()));
        Ok(())
    }

    fn fail(&mut self, why: &str) {
        (self.report)(&format!("FAILED {why}"));
        self.outcome.failed += 1;
    }

    /// Runs scenarios on one manager, several at a time.
    async fn run_shared(&mut self, shared: &Shared) -> Result<()> {
        let Shared { subject, controllers, scenarios } = shared;
        let name = format!("{subject}-{}", controllers.replace(',', "-"));
        let mut manager = start_manager(&self.plane, *subject, &name, controllers, &[])?;
        let log = (*subject == Subject::Ours).then(|| SharedLog::new(manager.log().to_owned()));
        let this = &*self;
        let log = log.as_ref();
        let runs = scenarios.iter().map(|&it| async move { (it, this.run_in_time(it, log).await) });
        let results: Vec<(Selected, bool)> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
        for (it, passed) in results {
            self.count(it, passed);
        }
        manager.must_run()?;
        // What it logs at its end is read too.
        manager.terminate()?;
        manager.wait(PATIENCE).await?;
        if let Some(log) = log {
            let rest = log.unread(scenarios)?;
            if !rest.is_empty() {
                bail!("it logged {}", joined(&rest));
            }
        }
        Ok(())
    }

    async fn run_one(&mut self, it: Selected, log: Option<&SharedLog>) {
        let passed = self.run_in_time(it, log).await;
        self.count(it, passed);
    }

    fn count(&mut self, it: Selected, passed: bool) {
        if passed {
            self.outcome.passed += 1;
            if it.subject == Subject::Peer {
                self.outcome.peer_passed.push(it.scenario.name);
            }
        } else {
            self.outcome.failed += 1;
        }
    }

    /// Runs one scenario in a namespace of its own, and reads what its managers logged; true if it held.
    async fn run_in_time(&self, selected: Selected, log: Option<&SharedLog>) -> bool {
        let started = Instant::now();
        let case = Case::new(&self.plane, selected);
        let Scenario { setup, run, .. } = selected.scenario;
        let running = match setup.runs {
            Runs::OnOwnPlanes => run(case.clone()),
            Runs::OnSharedManager | Runs::WithOwnManagers | Runs::Exclusively => {
                in_namespace(case.clone(), self.on, *run).boxed_local()
            }
        };
        let guarded = AssertUnwindSafe(running).catch_unwind();
        let result = match tokio::time::timeout(LIMIT, guarded).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(anyhow!("it panicked")),
            Err(_) => Err(anyhow!("it took more than {} s", LIMIT.as_secs())),
        };
        let found = match log {
            Some(log) => log.of(selected),
            None => case.findings(selected.scenario.setup.expected_errors),
        };
        let result = match (result, found) {
            (Ok(()), Ok(found)) if found.is_empty() => Ok(()),
            (Ok(()), Ok(found)) => Err(anyhow!("ours logged {}", joined(&found))),
            (Err(error), Ok(found)) if !found.is_empty() => {
                Err(error.context(format!("ours logged {}", joined(&found))))
            }
            (Err(error), _) | (Ok(()), Err(error)) => Err(error),
        };
        let (name, seconds) = (selected.name(), started.elapsed().as_secs_f64());
        match &result {
            Ok(()) => (self.report)(&format!("ok     {name} ({seconds:.1} s)")),
            Err(error) => (self.report)(&format!("FAILED {name} ({seconds:.1} s): {error:#}")),
        }
        result.is_ok()
    }
}

/// The log of a manager that several scenarios share: a finding belongs to the scenario whose namespace it names.
struct SharedLog {
    path: PathBuf,
    reported: RefCell<BTreeSet<Finding>>,
}

impl SharedLog {
    fn new(path: PathBuf) -> Self {
        Self { path, reported: RefCell::default() }
    }

    /// What was logged so far about a scenario.
    fn of(&self, selected: Selected) -> Result<Vec<Finding>> {
        let mut found = findings(&read(&self.path)?, selected.scenario.setup.expected_errors);
        found.retain(|finding| finding.names(&selected.namespace()));
        self.reported.borrow_mut().extend(found.iter().cloned());
        Ok(found)
    }

    /// The findings that failed no scenario: they name none, or were logged after its end.
    fn unread(&self, scenarios: &[Selected]) -> Result<Vec<Finding>> {
        let log = read(&self.path)?;
        let is_expected = |finding: &Finding| {
            let about = scenarios.iter().find(|it| finding.names(&it.namespace()));
            about.is_some_and(|it| {
                is_event_without_namespace(finding, &it.namespace())
                    || !findings(&log, it.scenario.setup.expected_errors).contains(finding)
            })
        };
        let mut rest = findings(&log, &[]);
        rest.retain(|finding| !self.reported.borrow().contains(finding) && !is_expected(finding));
        Ok(rest)
    }
}

/// Whether an event came after its namespace was gone. The suite removes the namespace as soon as a scenario has ended;
/// upstream logs such an event as an error too.
fn is_event_without_namespace(finding: &Finding, namespace: &str) -> bool {
    finding.contains("Server rejected event") && finding.contains(&format!(r#"namespaces \"{namespace}\" not found"#))
}

fn read(log: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))
}

/// The first findings, one a line.
fn joined(found: &[Finding]) -> String {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = found.iter().take(SHOWN).map(ToString::to_string).collect();
    if found.len() > SHOWN {
        lines.push(format!("and {} more", found.len() - SHOWN));
    }
    lines.join("\n  ")
}

async fn in_namespace(case: Case, on: On, run: fn(Case) -> LocalBoxFuture<'static, Result<()>>) -> Result<()> {
    let namespaces: Api<corev1::Namespace> = Api::all(case.client());
    let name = case.namespace().to_owned();
    let mut namespace = corev1::Namespace::default();
    namespace.metadata.name = Some(name.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("cannot make namespace {name}"))?;
    if on != On::Sandbox {
        // Without it no pod is admitted.
        let accounts: Api<corev1::ServiceAccount> = case.api();
        eventually("the service account of the namespace", async || Ok(accounts.get("default").await?)).await?;
    }
    let result = run(case).await;
    // What is left behind would keep the manager busy during the scenarios that follow.
    let removed = namespaces.delete(&name, &DeleteParams::default()).await;
    result?;
    match removed {
        Ok(_) => Ok(()),
        Err(error) => bail!("cannot remove namespace {name}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::SharedLog;
    use crate::manager_log::ExpectedError;
    use crate::scenario::{Scenario, Selected, Setup};
    use crate::subject::Subject;

    const fn scenario(name: &'static str, expected_errors: &'static [ExpectedError]) -> Scenario {
        let setup = Setup::of("replicaset").ours().expecting(expected_errors);
        Scenario { name, setup, source: file!(), run: |_| Box::pin(async { Ok(()) }) }
    }

    static SCENARIOS: [Scenario; 2] = [
        scenario("set/scales", &[]),
        scenario("set/is_forbidden", &[ExpectedError { message: "lacks a permission", reason: "it takes them away" }]),
    ];

    fn selected() -> Vec<Selected> {
        SCENARIOS.iter().map(|scenario| Selected { subject: Subject::Ours, scenario }).collect()
    }

    /// A log with one error about each scenario, one about none, and what came when the scenarios had ended.
    fn log(late: &str) -> (tempfile::TempDir, SharedLog) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ours.log");
        let line = |text: &str| format!("E0102 03:04:05.250000      17 worker.rs:1] {text}\n");
        let lines = [
            "Object cannot be decoded key=ours-set-scales/web",
            "Reconcile lacks a permission key=ours-set-is-forbidden/web",
            "Unable to reach the API server",
            late,
        ];
        std::fs::write(&path, lines.map(line).concat()).expect("the log must be written");
        (folder, SharedLog::new(path))
    }

    #[test]
    fn an_error_belongs_to_the_scenario_whose_namespace_it_names() {
        let (_folder, log) = log("");
        let [scales, is_forbidden] = selected()[..] else { panic!("there are two") };
        let found = log.of(scales).expect("the log is there");
        assert!(found.len() == 1 && found[0].to_string().contains("cannot be decoded"), "{found:?}");
        assert!(log.of(is_forbidden).expect("the log is there").is_empty(), "it is expected");
    }

    #[test]
    fn an_event_may_come_after_its_namespace_is_gone() {
        let rejected = |error: &str| {
            let (_folder, log) = log(&format!(r#"Server rejected event event="web.1" error="{error}""#));
            let rest = log.unread(&selected()).expect("the log is there");
            rest.iter().any(|finding| finding.contains("Server rejected event"))
        };
        assert!(!rejected(r#"namespaces \"ours-set-scales\" not found"#));
        assert!(rejected(r#"namespaces \"default\" not found"#), "no scenario removes it");
        assert!(rejected(r#"events is forbidden in \"ours-set-scales\""#), "another refusal");
    }

    #[test]
    fn what_belongs_to_no_scenario_is_left_for_the_manager() {
        let (_folder, log) = log("Index function panicked key=ours-set-is-forbidden/web");
        for it in [selected()[0], selected()[0]] {
            log.of(it).expect("the log is there");
        }
        let rest = log.unread(&selected()).expect("the log is there");
        let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
        assert!(rest.iter().any(|line| line.contains("Unable to reach")), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("a panic: ")), "a panic after the end of its scenario: {rest:?}");
        assert!(!rest.iter().any(|line| line.contains("cannot be decoded")), "reported before: {rest:?}");
        assert!(!rest.iter().any(|line| line.contains("lacks a permission")), "expected: {rest:?}");
    }
}
