//! [`Scenario`]: controllers, objects, a script and a goal.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::Extensions;
use kcm_framework::discovery::Discovery;
use kcm_sandbox_apiserver::{ManualClock, Resource, Sandbox, SandboxOptions};
use kcm_testing::{PreparedManager, START, TestEnvironment, discover};
use serde_json::Value;

use crate::plant::Plant;
use crate::schedule::Settings;
use crate::violation::Invariant;

type Condition = Arc<dyn Fn(&Sandbox) -> bool + Send + Sync>;
/// A condition of the cluster and of what is [outside](Scenario::outside) of it.
type WiderCondition = Arc<dyn Fn(&Sandbox, &Extensions) -> bool + Send + Sync>;
type Action = Arc<dyn Fn(&Sandbox) + Send + Sync>;

/// A scenario: what the API server holds, which controllers run, what the user does, and what must hold at the end.
#[must_use = "a scenario does nothing until it runs"]
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) sandbox: Sandbox,
    pub(crate) manager: PreparedManager,
    pub(crate) other_manager: Option<PreparedManager>,
    pub(crate) pods_fail: bool,
    pub(crate) script: Vec<(Condition, Action)>,
    pub(crate) acts: Vec<(String, Action)>,
    pub(crate) ticks: Vec<(Duration, Action)>,
    pub(crate) goal: WiderCondition,
    /// Conditions of every moment, with the id and the text of their rules.
    pub(crate) always: Vec<(String, String, WiderCondition)>,
    outside: Option<Arc<dyn Fn() -> Extensions + Send + Sync>>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) plant: Option<Plant>,
}

impl Scenario {
    /// A scenario with the controllers and settings of `environment` and an empty cluster. Its goal holds from the start.
    ///
    /// # Panics
    /// If descriptors or settings are refused.
    pub fn new(name: &str, environment: &TestEnvironment) -> Self {
        let options = SandboxOptions { start: START, seed: 1, request_log: 0, ..SandboxOptions::default() };
        let sandbox = Sandbox::with_clock(options, ManualClock::default());
        let manager = environment.prepare_manager().discovery(discovered(&sandbox));
        let goal: WiderCondition = Arc::new(|_, _| true);
        let name = name.to_owned();
        Self {
            name,
            sandbox,
            manager,
            other_manager: None,
            pods_fail: false,
            script: Vec::new(),
            acts: Vec::new(),
            ticks: Vec::new(),
            goal,
            always: Vec::new(),
            outside: None,
            invariants: Vec::new(),
            plant: None,
        }
    }

    /// Sets the settings of a process that [restarts with others](crate::schedule::Settings::Other), such as another number
    /// of workers. The controllers must be the same.
    ///
    /// # Panics
    /// If descriptors or settings are refused.
    pub fn other_settings(self, environment: &TestEnvironment) -> Self {
        let manager = environment.prepare_manager().discovery(discovered(&self.sandbox));
        Self { other_manager: Some(manager), ..self }
    }

    /// Lets schedules fail and evict pods. The goal must allow for pods that have failed.
    pub fn pods_fail(self) -> Self {
        Self { pods_fail: true, ..self }
    }

    /// Creates an object before the start.
    ///
    /// # Panics
    /// If the API server refuses the object.
    pub fn object(mut self, resource: &Resource, object: Value) -> Self {
        self.sandbox.create(resource, object).unwrap_or_else(|status| panic!("the object is refused: {status:?}"));
        if resource.plural == "customresourcedefinitions" {
            let found = discovered(&self.sandbox);
            self.other_manager = self.other_manager.map(|manager| manager.discovery(found.clone()));
            self.manager = self.manager.discovery(found);
        }
        self
    }

    /// Changes the API server before the start, for what [`object`](Self::object) cannot do: statuses, further kinds.
    pub fn prepare(self, prepare: impl FnOnce(&Sandbox)) -> Self {
        prepare(&self.sandbox);
        let manager = self.manager.discovery(discovered(&self.sandbox));
        Self { manager, ..self }
    }

    /// Adds an action of the user, which happens once `when` holds and all actions before have happened.
    pub fn then(
        mut self,
        when: impl Fn(&Sandbox) -> bool + Send + Sync + 'static,
        action: impl Fn(&Sandbox) + Send + Sync + 'static,
    ) -> Self {
        self.script.push((Arc::new(when), Arc::new(action)));
        self
    }

    /// Adds an action of the user that schedules perform by its name.
    pub fn act(mut self, name: &str, action: impl Fn(&Sandbox) + Send + Sync + 'static) -> Self {
        self.acts.push((name.to_owned(), Arc::new(action)));
        self
    }

    /// Adds an action of the cluster that happens once in each period, for example the renewal of a lease.
    pub fn every(mut self, period: Duration, action: impl Fn(&Sandbox) + Send + Sync + 'static) -> Self {
        self.ticks.push((period, Arc::new(action)));
        self
    }

    /// Sets the state that every run must reach, and keep.
    pub fn goal(self, goal: impl Fn(&Sandbox) -> bool + Send + Sync + 'static) -> Self {
        Self { goal: Arc::new(move |sandbox, _| goal(sandbox)), ..self }
    }

    /// Adds state outside of the cluster, such as files. Each run begins with a value of its own, which all processes of the
    /// run share. Controllers get it as an [extension](kcm_framework::ControllerContext::extension) of this type; extensions
    /// of the environment are not passed to them.
    ///
    /// The value must not wait for anything outside of the process: the simulation would go on without it.
    pub fn outside<T: Send + Sync + 'static>(self, begin: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let outside = move || {
            let extensions = Extensions::default();
            extensions.insert(begin());
            extensions
        };
        Self { outside: Some(Arc::new(outside)), ..self }
    }

    /// As [`goal`](Self::goal), for a state of the cluster and of what is [outside](Self::outside).
    ///
    /// # Panics
    /// In the run, if the state outside is of another type.
    pub fn goal_with<T: Send + Sync + 'static>(
        self,
        goal: impl Fn(&Sandbox, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { goal: with(goal), ..self }
    }

    /// Adds a rule that must hold after every write, for the cluster and what is [outside](Self::outside). `what` says what is
    /// broken if it does not hold.
    ///
    /// # Panics
    /// In the run, if the state outside is of another type.
    pub fn always<T: Send + Sync + 'static>(
        mut self,
        rule: &str,
        what: &str,
        holds: impl Fn(&Sandbox, &T) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.always.push((rule.to_owned(), what.to_owned(), with(holds)));
        self
    }

    /// Adds a rule that must hold for every history.
    pub fn invariant(mut self, invariant: Invariant) -> Self {
        self.invariants.push(invariant);
        self
    }

    /// Plants a bug, to test that the search finds it.
    pub fn planted(self, plant: Plant) -> Self {
        Self { plant: Some(plant), ..self }
    }

    /// The manager of a run that shares the state outside.
    pub(crate) fn manager_with(&self, settings: Settings, outside: &Extensions) -> PreparedManager {
        let manager = match settings {
            Settings::Same => &self.manager,
            Settings::Other => self.other_manager.as_ref().unwrap_or(&self.manager),
        };
        if self.outside.is_some() { manager.clone().extensions(outside.clone()) } else { manager.clone() }
    }

    /// Returns the state outside at the begin of a run.
    pub(crate) fn begin_outside(&self) -> Extensions {
        self.outside.as_ref().map(|begin| begin()).unwrap_or_default()
    }

    /// Returns the name of the scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A condition of the state of that type.
fn with<T: Send + Sync + 'static>(condition: impl Fn(&Sandbox, &T) -> bool + Send + Sync + 'static) -> WiderCondition {
    Arc::new(move |sandbox, outside| {
        let state = outside.get::<T>().expect("the state outside must be of the type of the condition");
        condition(sandbox, &state)
    })
}

fn discovered(sandbox: &Sandbox) -> Discovery {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without input and output can always be built");
    runtime.block_on(discover(sandbox)).expect("the sandbox must describe itself")
}
