//! Managers that take turns.

use anyhow::Result;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::wait::PATIENCE;

/// Ends a manager; leader election lets the next one start after that.
pub(super) async fn end(manager: &mut Process) -> Result<()> {
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    Ok(())
}
