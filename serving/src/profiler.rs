//! Makes the profiles that `/debug/pprof/` serves.

use std::time::Duration;

use kcm_framework::async_trait;

/// Makes profiles of this process, in pprof's format.
#[async_trait]
pub trait Profiler: Send + Sync {
    /// Returns a profile of the CPU time in the next `duration`.
    ///
    /// # Errors
    /// If no profile can be made.
    async fn cpu(&self, duration: Duration) -> Result<Vec<u8>, ProfileError>;

    /// Returns a profile of the memory in use.
    ///
    /// # Errors
    /// If no profile can be made.
    async fn heap(&self) -> Result<Vec<u8>, ProfileError>;
}

/// An error that prevents a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Another profile is being made.
    #[error("another profile is already running")]
    InUse,
    /// This program cannot make it.
    #[error("{0}")]
    NotSupported(String),
    /// The program cannot be started again.
    #[error("cannot start the process that profiles this one: {0}")]
    Start(std::io::Error),
    /// The helper reports this error.
    #[error("cannot profile this process: {0}")]
    Failed(String),
}
