//! The objects that a loop reads from one cache.

use std::marker::PhantomData;
use std::time::Duration;

use kcm_api::{KnownView, Resource, View};
use kcm_informers::ListOptions;

/// The objects that a loop reads as the view `V`: their resource, the list options, and whether they are resynced.
///
/// Sources with the same resource, view and list options share one cache, in all controllers.
///
/// ```
/// use kcm_framework::Source;
/// use kcm_framework::api::{PartialObjectMeta, Resource, views::Pod};
/// use kcm_framework::informers::ListOptions;
///
/// let of_one_namespace = Source::<Pod>::known().list_options(ListOptions::namespace("shop"));
/// let of_a_crd = Source::<PartialObjectMeta>::of(Resource::namespaced("example.com", "v1", "websites", "Website"));
/// ```
#[derive(Debug)]
#[must_use]
pub struct Source<V> {
    pub(super) resource: Resource,
    pub(super) list_options: ListOptions,
    pub(super) resync: Resync,
    view: PhantomData<fn() -> V>,
}

impl<V: View> Source<V> {
    /// All objects of any resource, such as a resource that is known at run time only.
    pub fn of(resource: Resource) -> Self {
        Self { resource, list_options: ListOptions::default(), resync: Resync::Never, view: PhantomData }
    }

    /// All objects of the resource of the view.
    pub fn known() -> Self
    where
        V: KnownView,
    {
        Self::of(V::RESOURCE)
    }

    /// Only the objects that match, for example of one namespace or one selector.
    pub fn list_options(self, list_options: ListOptions) -> Self {
        Self { list_options, ..self }
    }

    /// Maps every object again at the resync period of the manager, as the primary resource always does.
    pub fn resync(self) -> Self {
        Self { resync: Resync::PeriodOfManager, ..self }
    }

    /// Maps every object again at a period of its own; zero for never.
    pub fn resync_every(self, period: Duration) -> Self {
        Self { resync: if period.is_zero() { Resync::Never } else { Resync::Every(period) }, ..self }
    }
}

/// When every object is mapped again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resync {
    Never,
    PeriodOfManager,
    Every(Duration),
}

impl Resync {
    pub(super) const fn is_of_manager(self) -> bool {
        matches!(self, Self::PeriodOfManager)
    }

    /// Returns the resync period. `of_manager` is the period of the manager.
    pub(super) const fn period(self, of_manager: Duration) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::PeriodOfManager => Some(of_manager),
            Self::Every(period) => Some(period),
        }
    }
}
