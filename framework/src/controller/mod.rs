//! Controllers: descriptor, registry, selection, context, and the loops that they run.

mod context;
mod descriptor;

mod registry;
mod running;
mod selection;

pub(crate) use context::SharedContext;
pub use context::{ControllerContext, Extensions, SettingsSection};
pub use descriptor::{ControllerDescriptor, InitFunc, StartGroup};
pub use registry::{Registry, RegistryError};
pub use running::{DebugPage, HealthCheck, Running};
pub use selection::{AbsentController, Selection, SelectionError};
