//! Managers that take turns.

use anyhow::Result;

use crate::process::Process;
use crate::subject::Subject;
use crate::wait::PATIENCE;

/// The managers after the first one, which is the peer's: three times back and forth.
pub(super) const TURNS: [Subject; 6] =
    [Subject::Ours, Subject::Peer, Subject::Ours, Subject::Peer, Subject::Ours, Subject::Peer];

/// Ends a manager; leader election lets the next one start after that.
pub(super) async fn end(manager: &mut Process) -> Result<()> {
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    Ok(())
}
