//! Managers that take turns.

use anyhow::Result;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::PATIENCE;

/// The managers after the first one, which is the peer's: three times back and forth.
pub(super) const TURNS: [Subject; 6] =
    [Subject::Ours, Subject::Peer, Subject::Ours, Subject::Peer, Subject::Ours, Subject::Peer];

/// Ends a manager; leader election lets the next one start after that.
pub(super) async fn end(manager: &mut Process) -> Result<()> {
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    Ok(())
}
