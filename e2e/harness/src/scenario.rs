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
pub const LIMITS: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// One scenario: a claim about a controller, shown on a real API server. [`scenarios!`](crate::scenarios) registers it.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The controller and the claim, as in `replicaset/adopts`.
    pub name: &'static str,
    /// What it needs.
    pub setup: Setup,
    /// The file that declares it, by `file!()`.
    pub source: &'static str,
    /// The scenario itself.
    pub run: fn(Case) -> LocalBoxFuture<'static, Result<()>>,
}

impl Scenario {
    /// Whether this manager is to show it.
    pub fn is_about(&self, subject: Subject) -> bool {
        self.setup.subjects.contains(&subject)
    }
}

inventory::collect!(Scenario);

/// Every scenario that is linked, by name.
pub fn all() -> Vec<&'static Scenario> {
    let mut all: Vec<_> = inventory::iter::<Scenario>.into_iter().collect();
    all.sort_by_key(|it| it.name);
    all
}

/// Registers scenarios: what they need, then the name and the function of each.
///
/// ```
/// use anyhow::Result;
/// use kcm_e2e_harness::scenario::{Case, Setup};
///
/// kcm_e2e_harness::scenarios! {
///     Setup::of("replicaset") => {
///         "replicaset/adopts": adopts,
///     }
/// }
///
/// async fn adopts(case: Case) -> Result<()> {
///     # drop(case);
///     Ok(())
/// }
///
/// assert_eq!(kcm_e2e_harness::scenario::all()[0].name, "replicaset/adopts");
/// ```
#[macro_export]
macro_rules! scenarios {
    ($($setup:expr => { $($name:literal: $run:expr,)+ })+) => {
        $($($crate::inventory::submit! {
            $crate::scenario::Scenario {
                name: $name,
                setup: $setup,
                source: file!(),
                run: |case| Box::pin($run(case)),
            }
        })+)+
    };
}

/// What a scenario needs: the manager's controllers, whose manager, and what may run at the same time.
#[derive(Clone, Copy)]
pub struct Setup {
    pub(crate) controllers: &'static str,
    pub(crate) subjects: &'static [Subject],
    pub(crate) runs: Runs,
    pub(crate) expected_errors: &'static [ExpectedError],
    pub(crate) is_long: bool,
}

impl Setup {
    /// A manager of the suite with these controllers, as `--controllers` takes them; ours and then upstream's.
    #[must_use]
    pub const fn of(controllers: &'static str) -> Self {
        Self { controllers, subjects: &Subject::ALL, runs: Runs::OnSharedManager, expected_errors: &[], is_long: false }
    }

    /// Our manager alone is to show it.
    #[must_use]
    pub const fn ours(self) -> Self {
        Self { subjects: &[Subject::Ours], ..self }
    }

    /// Upstream's manager alone is to show it.
    #[must_use]
    pub const fn upstreams(self) -> Self {
        Self { subjects: &[Subject::Peer], ..self }
    }

    /// The scenario starts its managers. Other scenarios run at the same time, on other control planes.
    #[must_use]
    pub const fn with_own_managers(self) -> Self {
        Self { runs: Runs::WithOwnManagers, ..self }
    }

    /// The scenario starts control planes and their managers. It gets no namespace.
    #[must_use]
    pub const fn on_own_planes(self) -> Self {
        Self { runs: Runs::OnOwnPlanes, ..self }
    }

    /// The scenario starts its managers, and nothing else runs: what it asserts depends on pauses that a busy machine
    /// would stretch.
    #[must_use]
    pub const fn exclusively(self) -> Self {
        Self { runs: Runs::Exclusively, ..self }
    }

    /// The scenario takes many minutes: the quick list leaves it out, so that full runs alone have it.
    #[must_use]
    pub const fn in_full_runs(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Errors that a manager of ours logs because of what the scenario does. Any other error fails the scenario.
    #[must_use]
    pub const fn expecting(self, expected_errors: &'static [ExpectedError]) -> Self {
        Self { expected_errors, ..self }
    }
}

/// Which manager a scenario is about, and what may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    /// One that the suite started; other scenarios use it at the same time.
    OnSharedManager,
    /// Managers that the scenario starts. Other scenarios run at the same time, on other control planes.
    WithOwnManagers,
    /// Control planes that the scenario starts, with their managers: it needs nothing of the suite's.
    OnOwnPlanes,
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
    pub fn new(plane: &Rc<ControlPlane>, selected: Selected) -> Self {
        Self {
            plane: Rc::clone(plane),
            subject: selected.subject,
            controllers: selected.scenario.setup.controllers,
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
    pub fn findings(&self, expected: &[ExpectedError]) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        for path in self.logs.borrow().iter() {
            let log = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            found.extend(findings(&log, expected));
        }
        Ok(found)
    }
}

/// Starts a manager with the usual limits, `name` being that of its log; ours with no more than its roles.
pub fn start_manager(
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
    /// Whose manager.
    pub subject: Subject,
    /// The scenario.
    pub scenario: &'static Scenario,
}

impl Selected {
    /// The name by which it is selected and reported, as in `ours/replicaset/adopts`.
    pub fn name(self) -> String {
        format!("{}/{}", self.subject, self.scenario.name)
    }

    /// Returns `true` if full runs alone have it.
    pub const fn is_long(self) -> bool {
        self.scenario.setup.is_long
    }

    /// The namespace in which it runs.
    pub fn namespace(self) -> String {
        shortened(&self.name().replace(['/', '_'], "-"))
    }
}

/// A name that is too long for a namespace keeps the subject and its end.
fn shortened(name: &str) -> String {
    const LONGEST: usize = 63;
    let Some((subject, rest)) = name.split_once('-').filter(|_| name.len() > LONGEST) else { return name.to_owned() };
    let left_out = name.len() - LONGEST;
    format!("{subject}-{}", rest[left_out..].trim_start_matches('-'))
}

/// Those whose name contains one of the filters; all of them if there is no filter.
pub fn select(scenarios: impl IntoIterator<Item = &'static Scenario>, filters: &[String]) -> Vec<Selected> {
    let of_each = |scenario: &'static Scenario| {
        scenario.setup.subjects.iter().map(move |&subject| Selected { subject, scenario })
    };
    scenarios
        .into_iter()
        .flat_map(of_each)
        .filter(|it| filters.is_empty() || filters.iter().any(|filter| it.name().contains(filter.as_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Scenario, Selected, Setup, select, shortened};

    #[test]
    fn a_namespace_has_a_name_of_at_most_63_characters() {
        assert_eq!(shortened("ours-replicaset-creates"), "ours-replicaset-creates");
        let long = format!("peer-{}-{}", "a".repeat(40), "b".repeat(40));
        assert_eq!(shortened(&long), format!("peer-{}-{}", "a".repeat(17), "b".repeat(40)));
    }

    const SETUP: Setup = Setup::of("replicaset");
    static SCENARIOS: [Scenario; 2] = [
        Scenario { name: "replicaset/creates", setup: SETUP, source: file!(), run: |_| Box::pin(async { Ok(()) }) },
        Scenario {
            name: "replicaset/survives",
            setup: SETUP.ours().with_own_managers(),
            source: file!(),
            run: |_| Box::pin(async { Ok(()) }),
        },
    ];

    fn names(filters: &[&str]) -> Vec<String> {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        select(&SCENARIOS, &filters).into_iter().map(Selected::name).collect()
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
