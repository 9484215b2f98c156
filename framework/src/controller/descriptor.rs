//! The descriptor of a controller: its names, its settings and its `InitFunc`.

use std::future::ready;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kcm_api::Need;
use kcm_client::{BoxError, ClientLimits};
use kcm_config::{Gate, Row};

use super::{ControllerContext, DescriptorParts, Loops};

/// The function that initializes a controller: it adds event handlers and returns the loops to run, or
/// [`Loops::none`] if the cluster or the settings lack what the controller needs.
///
/// Called once at start, again with back-off if it fails, and again after changes of the served resources if it returned
/// no loops or a resource that its loops read is not served any more. Its event handlers of an earlier call are removed
/// before. It must not block and must not wait for caches: informers start after every controller has been initialized.
///
/// It captures nothing: everything that it uses is in the context.
///
/// ```compile_fail
/// use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
///
/// async fn init(_context: &ControllerContext) -> Result<Loops, BoxError> {
///     Ok(Loops::new())
/// }
///
/// const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter-controller", init);
/// ```
pub type InitFunc = fn(&ControllerContext) -> Result<Loops, BoxError>;

/// An [`InitFunc`] that awaits something, such as a request.
pub type AsyncInitFunc = for<'a> fn(&'a ControllerContext) -> BoxFuture<'a, Result<Loops, BoxError>>;

/// An `InitFunc` of either form.
#[derive(Clone, Copy)]
pub(super) enum Init {
    Plain(InitFunc),
    Async(AsyncInitFunc),
}

/// The group in which a controller starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartGroup {
    /// Before all others, and regardless of `--controllers`: the token controller, whose tokens the others need.
    First,
    /// With all others, in the order of names.
    Rest,
}

/// The descriptor of a controller, a constant: its names, its settings and its `InitFunc`.
///
/// # Examples
/// ```
/// use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};
///
/// fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
///     Ok(Loops::new())
/// }
///
/// const GREETER: ControllerDescriptor =
///     ControllerDescriptor::new("greeter-controller", init).aliases(&["greeter"]);
///
/// kcm_framework::inventory::submit! { GREETER }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ControllerDescriptor {
    /// Canonical name, as `--controllers` lists it.
    pub name: &'static str,
    /// The aliases that `--controllers` accepts.
    pub aliases: &'static [&'static str],
    pub(super) service_account: &'static str,
    pub(super) acts_as_manager: bool,
    /// The component that its events name as their source.
    pub event_component: &'static str,
    /// The feature gates that must all be on for it to run.
    pub required_gates: &'static [Gate],
    /// The feature gates that it defines.
    pub feature_gates: &'static [Gate],
    /// Whether it runs if `--controllers` does not name it.
    pub on_by_default: bool,
    /// The group in which it starts.
    pub start_group: StartGroup,
    /// The rate limit of its requests.
    pub client_limits: ClientLimits,
    /// The parts of views, and the annotations, that it reads.
    pub needs: &'static [Need],
    /// The rows of its settings.
    pub settings: &'static [Row],
    pub(super) init: Init,
}

impl ControllerDescriptor {
    /// A controller that is on by default, has no aliases, and acts as the service account and records events as the
    /// component of its own name.
    ///
    /// Canonical names are lower-case words joined by hyphens and end in `-controller`, as upstream's do.
    #[must_use]
    pub const fn new(name: &'static str, init: InitFunc) -> Self {
        Self::with_init(name, Init::Plain(init))
    }

    /// As [`new`](Self::new), with an `InitFunc` that awaits something.
    #[must_use]
    pub const fn new_async(name: &'static str, init: AsyncInitFunc) -> Self {
        Self::with_init(name, Init::Async(init))
    }

    const fn with_init(name: &'static str, init: Init) -> Self {
        Self {
            name,
            aliases: &[],
            service_account: name,
            acts_as_manager: false,
            event_component: name,
            required_gates: &[],
            feature_gates: &[],
            on_by_default: true,
            start_group: StartGroup::Rest,
            client_limits: ClientLimits::OfSettings,
            needs: &[],
            settings: &[],
            init,
        }
    }

    /// Adds aliases that `--controllers` accepts for this controller.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the service account in `kube-system` that it acts as; several controllers may share one.
    #[must_use]
    pub const fn service_account(mut self, name: &'static str) -> Self {
        self.service_account = name;
        self
    }

    /// Makes it act with the credentials of the manager itself, through clients of that name, and not as a service account.
    ///
    /// # Upstream
    /// Only the token controller, which creates the tokens of service accounts.
    #[must_use]
    pub const fn manager_client(mut self, name: &'static str) -> Self {
        self.service_account = name;
        self.acts_as_manager = true;
        self
    }

    /// Sets the component that its events name as their source, if it differs from the name of the controller.
    #[must_use]
    pub const fn event_component(mut self, component: &'static str) -> Self {
        self.event_component = component;
        self
    }

    /// Sets the feature gates that it defines: `--feature-gates` accepts them besides the gates of Kubernetes.
    ///
    /// Controllers may share a gate, which both define alike.
    #[must_use]
    pub const fn feature_gates(mut self, gates: &'static [Gate]) -> Self {
        self.feature_gates = gates;
        self
    }

    /// Sets the feature gates that must all be on for it to run.
    #[must_use]
    pub const fn required_gates(mut self, gates: &'static [Gate]) -> Self {
        self.required_gates = gates;
        self
    }

    /// Makes it run only if `--controllers` names it.
    #[must_use]
    pub const fn off_by_default(mut self) -> Self {
        self.on_by_default = false;
        self
    }

    /// Sets the group in which it starts.
    #[must_use]
    pub const fn start_group(mut self, group: StartGroup) -> Self {
        self.start_group = group;
        self
    }

    /// Sets the rate limit of its requests, if it differs from the settings: `ClientLimits::Times { qps: 2, burst: 1 }`
    /// is twice the rate of the settings.
    ///
    /// Its events are sent within the limits of the settings in any case, through a rate limiter of their own then.
    #[must_use]
    pub const fn client_limits(mut self, limits: ClientLimits) -> Self {
        self.client_limits = limits;
        self
    }

    /// Sets the parts of views, and the annotations, that it reads: informers decode the parts that an enabled
    /// controller needs. [`ControllerContext::part`] reads a part.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [Need]) -> Self {
        self.needs = needs;
        self
    }

    /// Sets the rows of its settings, from which flags, environment variables and keys of the configuration file
    /// derive.
    #[must_use]
    pub const fn settings(mut self, rows: &'static [Row]) -> Self {
        self.settings = rows;
        self
    }

    /// Returns the fields that its context uses.
    pub(crate) const fn parts(&self) -> DescriptorParts {
        DescriptorParts {
            controller: self.name,
            identity: self.service_account,
            event_component: self.event_component,
            client_limits: self.client_limits,
            needs: self.needs,
            settings: self.settings,
        }
    }

    pub(crate) fn initialize<'a>(&self, context: &'a ControllerContext) -> BoxFuture<'a, Result<Loops, BoxError>> {
        match self.init {
            Init::Plain(init) => ready(init(context)).boxed(),
            Init::Async(init) => init(context),
        }
    }

    /// The service account that it acts as; absent if it acts as the manager itself.
    #[must_use]
    pub const fn account(&self) -> Option<&'static str> {
        if self.acts_as_manager { None } else { Some(self.service_account) }
    }
}

impl std::fmt::Debug for ControllerDescriptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerDescriptor")
            .field("name", &self.name)
            .field("aliases", &self.aliases)
            .field("start_group", &self.start_group)
            .finish_non_exhaustive()
    }
}

inventory::collect!(ControllerDescriptor);
