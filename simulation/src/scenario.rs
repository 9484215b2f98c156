//! [`Scenario`]: controllers, objects, a script and a goal.

use std::sync::Arc;
use std::time::Duration;

use kcm_framework::discovery::Discovery;
use kcm_sandbox_apiserver::{ManualClock, Resource, Sandbox, SandboxOptions};
use kcm_testing::{PreparedManager, START, TestEnvironment, discover};
use serde_json::Value;

use crate::plant::Plant;
use crate::violation::Invariant;

type Condition = Arc<dyn Fn(&Sandbox) -> bool + Send + Sync>;
type Action = Arc<dyn Fn(&Sandbox) + Send + Sync>;

/// A scenario: what the API server holds, which controllers run, what the user does, and what must hold at the end.
#[must_use = "a scenario does nothing until it runs"]
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) sandbox: Sandbox,
    pub(crate) manager: PreparedManager,
    pub(crate) script: Vec<(Condition, Action)>,
    pub(crate) acts: Vec<(String, Action)>,
    pub(crate) ticks: Vec<(Duration, Action)>,
    pub(crate) goal: Condition,
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
        let goal: Condition = Arc::new(|_| true);
        let name = name.to_owned();
        Self {
            name,
            sandbox,
            manager,
            script: Vec::new(),
            acts: Vec::new(),
            ticks: Vec::new(),
            goal,
            invariants: Vec::new(),
            plant: None,
        }
    }

    /// Creates an object before the start.
    ///
    /// # Panics
    /// If the API server refuses the object.
    pub fn object(self, resource: &Resource, object: Value) -> Self {
        self.sandbox.create(resource, object).unwrap_or_else(|status| panic!("the object is refused: {status:?}"));
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
        Self { goal: Arc::new(goal), ..self }
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

    /// Returns the name of the scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn discovered(sandbox: &Sandbox) -> Discovery {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without input and output can always be built");
    runtime.block_on(discover(sandbox)).expect("the sandbox must describe itself")
}
