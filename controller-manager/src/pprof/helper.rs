//! Starts the process that profiles this one.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kcm_framework::async_trait;
use kcm_serving::{ProfileError, Profiler};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::subcommand::{HELPER, Kind};

/// Makes profiles of this process, one at a time.
pub(crate) struct Helper {
    free: Semaphore,
    #[cfg(feature = "jemalloc")]
    heap: Option<super::jemalloc::HeapDump>,
}

impl Helper {
    pub(crate) fn new() -> Self {
        Self {
            free: Semaphore::new(1),
            #[cfg(feature = "jemalloc")]
            heap: super::jemalloc::HeapDump::new().ok(),
        }
    }

    #[cfg(feature = "jemalloc")]
    fn dump(&self) -> Result<Vec<u8>, String> {
        self.heap.as_ref().ok_or("there is no file in memory to write the heap profile to")?.write()
    }

    #[cfg(not(feature = "jemalloc"))]
    #[expect(clippy::unused_self, reason = "with jemalloc it is used")]
    fn dump(&self) -> Result<Vec<u8>, String> {
        Err("the heap is profiled by jemalloc, and this program was built without the cargo feature jemalloc"
            .to_owned())
    }
}

#[async_trait]
impl Profiler for Helper {
    /// Returns a profile of the CPU time in the next `duration`, in pprof's format.
    ///
    /// # Cancellation
    /// The child process is killed.
    ///
    /// # Errors
    /// If another profile is being made, or this process may not be traced.
    async fn cpu(&self, duration: Duration) -> Result<Vec<u8>, ProfileError> {
        let _one = self.free.try_acquire().map_err(|_| ProfileError::InUse)?;
        run(Kind::Cpu(duration), &[]).await
    }

    /// Returns a profile of the memory in use, in pprof's format.
    ///
    /// # Errors
    /// If another profile is being made, or the allocator samples nothing.
    async fn heap(&self) -> Result<Vec<u8>, ProfileError> {
        let _one = self.free.try_acquire().map_err(|_| ProfileError::InUse)?;
        let dump = self.dump().map_err(ProfileError::NotSupported)?;
        run(Kind::Heap, &dump).await
    }
}

/// Returns the path of the running program, even if its file was replaced.
fn program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

async fn run(kind: Kind, input: &[u8]) -> Result<Vec<u8>, ProfileError> {
    let program = program().map_err(ProfileError::Start)?;
    let mut child = Command::new(program)
        .arg(HELPER.name)
        .args(kind.operands())
        // Variables are settings of the manager.
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(ProfileError::Start)?;
    let _allowed = Tracer::allow(child.id());
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that ended says why.
        let _ended = stdin.write_all(input).await;
    }
    let output = child.wait_with_output().await.map_err(ProfileError::Start)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let reasons = String::from_utf8_lossy(&output.stderr);
    Err(ProfileError::Failed(reasons.trim().trim_start_matches("error: ").to_owned()))
}

/// The right of a child to trace this process, while the value lives. Yama's security module asks for it, and otherwise lets
/// only ancestors trace.
struct Tracer;

impl Tracer {
    #[cfg(target_os = "linux")]
    fn allow(child: Option<u32>) -> Self {
        use rustix::process::{PTracer, Pid, set_ptracer};
        if let Some(child) = child.and_then(|child| Pid::from_raw(i32::try_from(child).ok()?)) {
            // A kernel without Yama does not know the request, and does not need it.
            let _without = set_ptracer(PTracer::ProcessID(child));
        }
        Self
    }

    #[cfg(not(target_os = "linux"))]
    fn allow(_child: Option<u32>) -> Self {
        Self
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        {
            let _without = rustix::process::set_ptracer(rustix::process::PTracer::None);
        }
    }
}
