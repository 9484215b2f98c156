//! Controllers: descriptor, registry, selection, context, and the loops that they run.

mod context;
mod descriptor;

mod registry;
mod running;
mod selection;

pub use context::{ControllerContext, Extensions, SettingsSection};
pub(crate) use context::{DescriptorParts, SharedContext};
pub use descriptor::{ControllerDescriptor, InitFunc, StartGroup};
pub use registry::{Registry, RegistryError};
pub use running::{DebugPage, HealthCheck, Running};
pub use selection::{AbsentController, Selection, SelectionError};
