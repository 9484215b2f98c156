//! Controllers: descriptor, registry, selection, context, and the loops that they run.

mod context;
mod descriptor;
mod loops;
mod registry;
mod selection;
mod settings_in_use;

pub use context::{ControllerContext, Extensions};
pub(crate) use context::{DescriptorParts, SharedContext};
pub use descriptor::{AsyncInitFunc, ControllerDescriptor, InitFunc, StartGroup};
pub use loops::{DebugPage, HealthCheck, Loops};
pub use registry::{Registry, RegistryError};
pub use selection::{AbsentController, Selection, SelectionError};
pub(crate) use settings_in_use::SettingsInUse;
