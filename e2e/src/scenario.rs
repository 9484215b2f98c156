//! What a scenario is, what it gets, and how the command line selects it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use futures::future::LocalBoxFuture;
use kube::Client;
use kube::api::Api;

use crate::control_plane::ControlPlane;
use crate::manager;
use crate::manager_log::{ExpectedError, Finding, findings};
use crate::process::Process;
use crate::subject::Subject;

/// The client limits of a manager where a scenario sets no others.
pub(crate) const LIMITS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// One scenario: a claim about a controller, shown on a real API server.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The controller and the claim, as in `replicaset/adopts`.
    pub name: &'static str,
    /// The controllers that the manager runs, as `--controllers` takes them.
    pub controllers: &'static str,
    /// Whose manager is to show it.
    pub subjects: &'static [Subject],
    /// Which manager it is about, and what may run at the same time.
    pub runs: Runs,
    /// Errors that a manager of ours logs because of what the scenario does. Any other error fails the scenario.
    pub expected_errors: &'static [ExpectedError],
    /// The file that declares it, by `file!()`.
    pub source: &'static str,
    /// The scenario itself.
    pub run: fn(Case) -> LocalBoxFuture<'static, Result<()>>,
}

/// Which manager a scenario is about, and what may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// One that the suite started; other scenarios use it at the same time.
    OnSharedManager,
    /// Managers that the scenario starts. Other scenarios run at the same time, on other control planes.
    WithOwnManagers,
    /// Managers that the scenario starts. Nothing else runs: what the scenario asserts depends on pauses that a busy
    /// machine would stretch.
    Exclusively,
}

/// What a scenario gets: a control plane, a namespace of its own, and whose manager it is about.
#[derive(Clone)]
pub struct Case {
    plane: Rc<ControlPlane>,
    subject: Subject,
    controllers: &'static str,
    namespace: String,
    /// The logs of the programs of ours that the scenario started.
    logs: Rc<RefCell<BTreeSet<PathBuf>>>,
}

impl Case {
    /// The case of a selected scenario on a control plane.
    pub(crate) fn new(plane: &Rc<ControlPlane>, selected: Selected) -> Self {
        Self {
            plane: Rc::clone(plane),
            subject: selected.subject,
            controllers: selected.scenario.controllers,
            namespace: selected.namespace(),
            logs: Rc::default(),
        }
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        self.plane.client()
    }

    /// The control plane itself, for scenarios that start programs as other users.
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

    /// The controllers that the manager runs, as `--controllers` takes them.
    pub fn controllers(&self) -> &'static str {
        self.controllers
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
    pub fn start(&self, subject: Subject, args: &[&str]) -> Result<Process> {
        let name = format!("{}-{subject}", self.namespace);
        let manager = start_manager(&self.plane, subject, &name, self.controllers, args)?;
        if subject == Subject::Ours {
            self.read_later(&manager);
        }
        Ok(manager)
    }

    /// Starts another program of this workspace. Its log is read as a manager's is.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start_program(&self, program: &Path, args: &[&str]) -> Result<Process> {
        let process = Process::start(&self.namespace, program, args, self.plane.logs())?;
        self.read_later(&process);
        Ok(process)
    }

    fn read_later(&self, process: &Process) {
        self.logs.borrow_mut().insert(process.log().to_owned());
    }

    /// What the programs of ours have logged and should not have.
    pub(crate) fn findings(&self, expected: &[ExpectedError]) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        for path in self.logs.borrow().iter() {
            let log = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            found.extend(findings(&log, expected));
        }
        Ok(found)
    }
}

/// Starts a manager with the usual limits, `name` being that of its log; ours with no more than its roles.
pub(crate) fn start_manager(
    plane: &ControlPlane,
    subject: Subject,
    name: &str,
    controllers: &str,
    args: &[&str],
) -> Result<Process> {
    let controllers = format!("--controllers={controllers}");
    let roles = if subject == Subject::Ours { manager::with_upstreams_roles(plane) } else { Vec::new() };
    let usual = [controllers.as_str()].into_iter().chain(LIMITS).chain(roles.iter().map(String::as_str));
    let args: Vec<&str> = usual.chain(args.iter().copied()).collect();
    manager::start(subject, plane, name, &args)
}

/// A scenario for one subject, as the command line selects it.
#[derive(Clone, Copy)]
pub struct Selected {
    pub(crate) subject: Subject,
    pub(crate) scenario: &'static Scenario,
}

impl Selected {
    /// The name by which it is selected and reported, as in `ours/replicaset/adopts`.
    pub fn name(self) -> String {
        format!("{}/{}", self.subject, self.scenario.name)
    }

    /// The namespace in which it runs.
    pub(crate) fn namespace(self) -> String {
        self.name().replace(['/', '_'], "-")
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::{Runs, Scenario, Selected, Subject, select};
    use crate::scenarios;

    static SCENARIOS: [Scenario; 2] = [
        Scenario {
            name: "replicaset/creates",
            controllers: "replicaset",
            subjects: &Subject::ALL,
            runs: Runs::OnSharedManager,
            expected_errors: &[],
            source: file!(),
            run: |_| async { Ok(()) }.boxed_local(),
        },
        Scenario {
            name: "replicaset/survives",
            controllers: "replicaset",
            subjects: &[Subject::Ours],
            runs: Runs::WithOwnManagers,
            expected_errors: &[],
            source: file!(),
            run: |_| async { Ok(()) }.boxed_local(),
        },
    ];

    fn names(filters: &[&str]) -> Vec<String> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        select(SCENARIOS.iter(), &filters).into_iter().map(Selected::name).collect()
    }

    #[test]
    fn without_a_filter_every_scenario_runs_for_each_of_its_subjects() {
        assert_eq!(names(&[]), ["ours/replicaset/creates", "peer/replicaset/creates", "ours/replicaset/survives"]);
    }

    #[test]
    fn every_scenario_gives_its_namespace_a_name_that_is_short_enough() {
        for it in select(scenarios::all(), &[]) {
            assert!(it.namespace().len() <= 63, "{}", it.namespace());
        }
    }

    #[test]
    fn a_filter_is_a_part_of_the_name_and_several_add_up() {
        assert_eq!(names(&["creates"]), ["ours/replicaset/creates", "peer/replicaset/creates"]);
        assert_eq!(names(&["peer/", "survives"]), ["peer/replicaset/creates", "ours/replicaset/survives"]);
        assert!(names(&["nothing"]).is_empty());
    }
}
