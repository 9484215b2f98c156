//! Running scenarios and reporting what became of them.
//!
//! A run has one control plane. For each subject (our manager, then the peer) come first the
//! scenarios that start managers themselves, one after the other, then those that share one
//! manager, several at a time, each in a namespace of its own. Upstream's namespace, garbage and
//! quota controllers run beside it all, so that what belongs to them happens.
//!
//! On a sandbox ([`On::Sandbox`]) the same scenarios show that it serves as the real one does; it has collectors of its
//! own, and `NOT_ON_A_SANDBOX` says what it lacks.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1 as corev1;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use tokio::time::Instant;

use crate::control_plane::{ControlPlane, Options};
use crate::manager::Manager;
use crate::nodes;
use crate::subject::Subject;

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_mins(4);

/// How many nodes there are.
const NODES: usize = 3;

/// How many scenarios share a manager at a time.
const AT_ONCE: usize = 4;

/// Upstream's controllers that scenarios need and that are never under test here.
const HELPERS: &str = "--controllers=namespace-controller,garbage-collector-controller,resourcequota-controller";

/// Scenarios that a sandbox cannot show, each with the reason.
const NOT_ON_A_SANDBOX: [(&str, &str); 6] = [
    ("api/", "the table of API scenarios is played in the sandbox's own tests"),
    ("host/", "about the host and its users, not about an API"),
    ("hello/labels_namespaces", "counts requests by the API server's metrics"),
    ("replicaset/quota", "quotas are stored and not enforced"),
    ("deployment/may_not_make_a_set", "everybody may do everything"),
    ("deployment/may_not_make_a_pod", "everybody may do everything"),
];

/// What the scenarios run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Upstream's API server with etcd, its scheduler, and kwok's nodes.
    ControlPlane,
    /// The sandbox of our binary.
    Sandbox,
}

/// What a manager runs with where a scenario says nothing else.
const LIMITS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// One scenario: a claim about a controller, shown on a real API server.
pub struct Scenario {
    /// The controller and the claim, as in `replicaset/adopts`.
    pub name: &'static str,
    /// The controllers that the manager runs, as `--controllers` takes them.
    pub controllers: &'static str,
    /// Whose manager is to show it.
    pub subjects: &'static [Subject],
    /// Who starts that manager.
    pub manager: ManagedBy,
    /// The scenario itself.
    pub run: fn(Case) -> LocalBoxFuture<'static, Result<()>>,
}

/// Who starts the manager that a scenario is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedBy {
    /// The suite: it runs before the scenario begins, and other scenarios use it too.
    Suite,
    /// The scenario: nothing else runs meanwhile.
    Scenario,
}

/// What a scenario gets: a control plane, a namespace of its own, and whose manager it is about.
#[derive(Clone)]
pub struct Case {
    plane: Rc<ControlPlane>,
    subject: Subject,
    controllers: &'static str,
    namespace: String,
}

impl Case {
    /// A client with every right.
    pub fn client(&self) -> Client {
        self.plane.client()
    }

    /// The control plane itself, for those who start other programs than managers, or as other users.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The objects of one kind in this scenario's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// This scenario's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Whose manager this run is about.
    pub fn subject(&self) -> Subject {
        self.subject
    }

    /// Starts a manager with this scenario's controllers; `args` come after the usual limits.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(&self, subject: Subject, args: &[&str]) -> Result<Manager> {
        start(&self.plane, subject, self.controllers, args)
    }
}

fn start(plane: &ControlPlane, subject: Subject, controllers: &str, args: &[&str]) -> Result<Manager> {
    let controllers = format!("--controllers={controllers}");
    let args: Vec<&str> = [controllers.as_str()].iter().chain(&LIMITS).chain(args).copied().collect();
    Manager::start(subject, plane, &subject.to_string(), &args)
}

/// A scenario for one subject, as the command line selects it.
#[derive(Clone, Copy)]
pub struct Selected {
    subject: Subject,
    scenario: &'static Scenario,
}

impl Selected {
    /// The name by which it is selected and reported, as in `ours/replicaset/adopts`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.subject, self.scenario.name)
    }
}

/// Those whose name contains one of the filters; all of them if there is no filter.
pub fn select(scenarios: impl Iterator<Item = &'static Scenario>, filters: &[String]) -> Vec<Selected> {
    let of_each =
        |scenario: &'static Scenario| scenario.subjects.iter().map(move |&subject| Selected { subject, scenario });
    scenarios
        .flat_map(of_each)
        .filter(|it| filters.is_empty() || filters.iter().any(|filter| it.name().contains(filter.as_str())))
        .collect()
}

/// How a run went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Scenarios that held.
    pub passed: usize,
    /// Scenarios that did not.
    pub failed: usize,
}

/// Runs scenarios and tells `report` each line worth reading, as it comes.
///
/// # Errors
///
/// If the control plane or a helper cannot be started or dies; a scenario that fails is counted,
/// not an error.
pub async fn run(on: On, selected: &[Selected], report: &dyn Fn(&str)) -> Result<Outcome> {
    // The peer is needed in any case: it helps.
    Subject::Peer.program()?;
    if on == On::Sandbox || selected.iter().any(|it| it.subject == Subject::Ours) {
        Subject::Ours.program()?;
    }
    let selected = &possible(on, selected, report);
    let plane = match on {
        On::ControlPlane => {
            let options = Options { scheduler: true, kwok: true, ..Options::default() };
            ControlPlane::start(options).await?
        }
        On::Sandbox => ControlPlane::sandbox(NODES).await?,
    };
    let mut plane = Rc::new(plane);
    let outcome = run_on(on, &plane, selected, report).await;
    let own = Rc::get_mut(&mut plane).context("a scenario must not outlive the run")?;
    let alive = own.must_run();
    if !matches!(&outcome, Ok(outcome) if outcome.failed == 0) || alive.is_err() {
        own.keep_logs();
        report(&format!("logs are kept in {}", own.logs().display()));
    }
    alive?;
    outcome
}

/// Leaves out what cannot be shown there, and says so.
fn possible(on: On, selected: &[Selected], report: &dyn Fn(&str)) -> Vec<Selected> {
    let mut possible = selected.to_vec();
    if on == On::Sandbox {
        possible.retain(|it| match NOT_ON_A_SANDBOX.iter().find(|(name, _)| it.scenario.name.starts_with(name)) {
            Some((_, why)) => {
                report(&format!("left out {}: {why}", it.name()));
                false
            }
            None => true,
        });
    }
    possible
}

async fn run_on(on: On, plane: &Rc<ControlPlane>, selected: &[Selected], report: &dyn Fn(&str)) -> Result<Outcome> {
    // A sandbox comes with nodes and collectors.
    let mut helpers = None;
    if on == On::ControlPlane {
        nodes::create(&plane.client(), "node", NODES).await?;
        let args = [&[HELPERS], LIMITS.as_slice()].concat();
        helpers = Some(Manager::start(Subject::Peer, plane, "helpers", &args)?);
    }
    let mut outcome = Outcome::default();
    for subject in Subject::ALL {
        let (shared, alone): (Vec<Selected>, Vec<Selected>) =
            selected.iter().filter(|it| it.subject == subject).partition(|it| it.scenario.manager == ManagedBy::Suite);
        for it in alone {
            outcome.count(one(plane, it, report).await);
        }
        // One manager for all that need the same controllers.
        let mut controllers: Vec<&str> = shared.iter().map(|it| it.scenario.controllers).collect();
        controllers.sort_unstable();
        controllers.dedup();
        for controllers in controllers {
            let mut manager = start(plane, subject, controllers, &[])?;
            let runs =
                shared.iter().filter(|it| it.scenario.controllers == controllers).map(|it| one(plane, *it, report));
            let results: Vec<bool> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
            for passed in results {
                outcome.count(passed);
            }
            if let Err(error) = manager.must_run() {
                report(&format!("FAILED {subject}: {error:#}"));
                outcome.count(false);
            }
        }
    }
    if let Some(mut helpers) = helpers {
        helpers.must_run()?;
    }
    Ok(outcome)
}

impl Outcome {
    fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// Runs one scenario in a namespace of its own; true if it held.
async fn one(plane: &Rc<ControlPlane>, selected: Selected, report: &dyn Fn(&str)) -> bool {
    let started = Instant::now();
    let case = Case {
        plane: Rc::clone(plane),
        subject: selected.subject,
        controllers: selected.scenario.controllers,
        namespace: selected.name().replace(['/', '_'], "-"),
    };
    let guarded = AssertUnwindSafe(in_namespace(case, selected.scenario.run)).catch_unwind();
    let result = match tokio::time::timeout(LIMIT, guarded).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(anyhow!("it panicked")),
        Err(_) => Err(anyhow!("it took more than {} s", LIMIT.as_secs())),
    };
    let (name, seconds) = (selected.name(), started.elapsed().as_secs_f64());
    match &result {
        Ok(()) => report(&format!("ok     {name} ({seconds:.1} s)")),
        Err(error) => report(&format!("FAILED {name} ({seconds:.1} s): {error:#}")),
    }
    result.is_ok()
}

async fn in_namespace(case: Case, run: fn(Case) -> LocalBoxFuture<'static, Result<()>>) -> Result<()> {
    let namespaces: Api<corev1::Namespace> = Api::all(case.client());
    let name = case.namespace.clone();
    let mut namespace = corev1::Namespace::default();
    namespace.metadata.name = Some(name.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .with_context(|| format!("cannot make namespace {name}"))?;
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
    use futures::FutureExt;

    use super::{ManagedBy, Scenario, Subject, select};

    static SCENARIOS: [Scenario; 2] = [
        Scenario {
            name: "replicaset/creates",
            controllers: "replicaset",
            subjects: &Subject::ALL,
            manager: ManagedBy::Suite,
            run: |_| async { Ok(()) }.boxed_local(),
        },
        Scenario {
            name: "replicaset/survives",
            controllers: "replicaset",
            subjects: &[Subject::Ours],
            manager: ManagedBy::Scenario,
            run: |_| async { Ok(()) }.boxed_local(),
        },
    ];

    fn names(filters: &[&str]) -> Vec<String> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        select(SCENARIOS.iter(), &filters).iter().map(super::Selected::name).collect()
    }

    #[test]
    fn without_a_filter_every_scenario_runs_for_each_of_its_subjects() {
        assert_eq!(names(&[]), ["ours/replicaset/creates", "peer/replicaset/creates", "ours/replicaset/survives"]);
    }

    #[test]
    fn a_filter_is_a_part_of_the_name_and_several_add_up() {
        assert_eq!(names(&["creates"]), ["ours/replicaset/creates", "peer/replicaset/creates"]);
        assert_eq!(names(&["peer/", "survives"]), ["peer/replicaset/creates", "ours/replicaset/survives"]);
        assert!(names(&["nothing"]).is_empty());
    }
}
