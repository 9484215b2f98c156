//! Reasons for the end of a manager under leader election.

use kcm_framework::ManagerError;

use super::thread::LeaseThreadError;

/// Reason for the end of a manager under leader election, other than a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The manager could not start.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Leader election could not start.
    #[error(transparent)]
    Thread(#[from] LeaseThreadError),
    /// The lease was lost.
    #[error("leader election lost: the lease was not renewed in time, or another process holds it")]
    LeaseLost,
}
