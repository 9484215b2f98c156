//! The HTTPS port that a host hands to the sandbox.

use kcm_framework::{BoxFuture, Manager, Stop};

/// Serves the HTTPS port of the manager that runs the controllers, until it is stopped.
pub type ServePort = Box<dyn FnOnce(&Manager, Stop) -> BoxFuture<'static, Result<(), String>> + Send>;

/// The HTTPS port of the manager that runs the controllers.
pub struct ManagerPort {
    /// URL of the manager's HTTPS port.
    pub url: String,
    /// The URL of its status page, if it has one.
    pub page: Option<String>,
    /// Serves the port while the sandbox runs.
    pub serve: ServePort,
}
