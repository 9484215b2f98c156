//! The descriptor of a controller: its names, its settings and its `InitFunc`.

use futures::future::BoxFuture;
use kcm_api::Need;
use kcm_client::{BoxError, ClientLimits};
use kcm_config::{Gate, Row};

use super::{ControllerContext, DescriptorParts, Running};

/// The function that initializes a controller: it adds event handlers and returns the loops to run, or `None` where the
/// cluster does not serve the resources that it needs.
///
/// Called once at start, again with back-off if it fails, and again after changes of the served resources where it
/// returned `None` or a resource that its loops read disappeared. What it registered before is gone by then. It must not
/// wait for caches: informers start after every controller has been initialized.
///
/// It captures nothing: everything that it uses is in the context.
///
/// ```compile_fail
/// use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Running};
///
/// async fn init(_context: &ControllerContext) -> Result<Running, BoxError> {
///     Ok(Running::new())
/// }
///
/// const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter-controller", init);
/// ```
pub type InitFunc = for<'a> fn(&'a ControllerContext) -> BoxFuture<'a, Result<Option<Running>, BoxError>>;

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
/// use futures::FutureExt as _;
/// use kcm_framework::{ControllerContext, ControllerDescriptor, Running};
///
/// const GREETER: ControllerDescriptor = ControllerDescriptor::new("greeter-controller", |ctx: &ControllerContext| {
///     async move { Ok(Some(Running::new())) }.boxed()
/// })
/// .aliases(&["greeter"]);
///
/// kcm_framework::inventory::submit! { GREETER }
/// ```
#[derive(Clone, Copy)]
pub struct ControllerDescriptor {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    pub(super) service_account: &'static str,
    pub(super) acts_as_manager: bool,
    pub(super) event_component: &'static str,
    pub(super) required_gates: &'static [Gate],
    pub(super) feature_gates: &'static [Gate],
    pub(super) on_by_default: bool,
    pub(super) start_group: StartGroup,
    pub(super) client_limits: ClientLimits,
    pub(super) needs: &'static [Need],
    pub(super) settings: &'static [Row],
    pub(super) init: InitFunc,
}

impl ControllerDescriptor {
    /// A controller that is on by default, has no aliases, and acts as the service account and records events as the
    /// component of its own name.
    ///
    /// Canonical names are lower-case words joined by hyphens and end in `-controller`, as upstream's do.
    #[must_use]
    pub const fn new(name: &'static str, init: InitFunc) -> Self {
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
    /// The token controller alone: it makes what service accounts need to act.
    #[must_use]
    pub const fn manager_client(mut self, name: &'static str) -> Self {
        self.service_account = name;
        self.acts_as_manager = true;
        self
    }

    /// Sets the component that its events name as their source, where that is not the name of the controller.
    #[must_use]
    pub const fn event_component(mut self, component: &'static str) -> Self {
        self.event_component = component;
        self
    }

    /// Sets the feature gates that it defines: `--feature-gates` accepts them beside those of Kubernetes.
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

    /// Makes it run only where `--controllers` names it.
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

    /// Sets the rate limit of its requests, where it is another than that of the settings: `ClientLimits::Times { qps: 2,
    /// burst: 1 }` is twice the rate of the settings.
    ///
    /// Its events are sent within the limits of the settings in any case, through a rate limiter of their own then.
    #[must_use]
    pub const fn client_limits(mut self, limits: ClientLimits) -> Self {
        self.client_limits = limits;
        self
    }

    /// Sets the parts of views, and the annotations, that it reads: informers decode those that an enabled controller
    /// needs. [`ControllerContext::part`] reads a part.
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

    /// The parts of views, and the annotations, that it reads.
    #[must_use]
    pub const fn needed(&self) -> &'static [Need] {
        self.needs
    }

    /// The rate limit of its requests.
    #[must_use]
    pub const fn limits(&self) -> ClientLimits {
        self.client_limits
    }

    /// The rows of its settings.
    #[must_use]
    pub const fn rows(&self) -> &'static [Row] {
        self.settings
    }

    /// The feature gates that it defines.
    #[must_use]
    pub const fn defined_gates(&self) -> &'static [Gate] {
        self.feature_gates
    }

    /// The component that its events name as their source.
    #[must_use]
    pub const fn component(&self) -> &'static str {
        self.event_component
    }

    /// The feature gates that must all be on for it to run.
    #[must_use]
    pub const fn gates(&self) -> &'static [Gate] {
        self.required_gates
    }

    /// The group in which it starts.
    #[must_use]
    pub const fn group(&self) -> StartGroup {
        self.start_group
    }

    /// Its aliases.
    #[must_use]
    pub const fn other_names(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// What its context takes from it.
    pub(crate) const fn parts(&self) -> DescriptorParts {
        DescriptorParts {
            controller: self.name,
            identity: self.service_account,
            event_component: self.event_component,
            client_limits: self.client_limits,
            needs: self.needs,
        }
    }

    /// Calls its `InitFunc`.
    pub(crate) fn initialize<'a>(
        &self,
        context: &'a ControllerContext,
    ) -> BoxFuture<'a, Result<Option<Running>, BoxError>> {
        (self.init)(context)
    }

    /// The service account that it acts as; absent where it acts as the manager itself.
    #[must_use]
    pub const fn account(&self) -> Option<&'static str> {
        if self.acts_as_manager { None } else { Some(self.service_account) }
    }

    /// The canonical name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
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
