//! A program that runs for as long as its guard lives.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{procfs, wait};

/// How long a program may take to end after SIGTERM, when its guard is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// A child process whose output goes to a file.
///
/// Dropping it ends the process: SIGTERM, and SIGKILL if it is still there after five seconds.
#[derive(Debug)]
pub struct Process {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program`; what it prints is appended to `NAME.log` in `logs`.
    ///
    /// Of this process's environment it gets only `PATH`, so that a user's settings cannot change the outcome of the
    /// suite; `HOME` is the folder of the logs.
    ///
    /// # Errors
    ///
    /// If the program cannot be started or its log cannot be opened.
    pub fn start<S: AsRef<str>>(name: &str, program: &Path, args: &[S], logs: &Path) -> Result<Self> {
        let args: Vec<String> = args.iter().map(|arg| arg.as_ref().to_owned()).collect();
        let log = logs.join(format!("{name}.log"));
        let child = spawn(program, &args, &log, logs)?;
        Ok(Self { name: name.to_owned(), program: program.to_owned(), args, child, log })
    }

    /// Starts it again, as it was started, after it has ended. Its log goes on.
    ///
    /// # Errors
    ///
    /// If it still runs, or cannot be started.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.exited()?.is_some(), "{} still runs", self.name);
        let folder = self.log.parent().context("a log lies in a folder")?;
        self.child = spawn(&self.program, &self.args, &self.log, folder)?;
        Ok(())
    }

    /// The name it was started under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file of all that it has printed.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// All that it has printed.
    ///
    /// # Errors
    ///
    /// If its log cannot be read.
    pub fn printed(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))
    }

    /// How it ended, if it did.
    ///
    /// # Errors
    ///
    /// If the kernel does not say.
    pub fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("cannot read the status of {}", self.name))
    }

    /// Fails if the process has ended, with the end of its log.
    ///
    /// # Errors
    ///
    /// If it has.
    pub fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.exited()? {
            bail!("{} ended ({status}); its log {} ends with:\n{}", self.name, self.log.display(), self.log_tail());
        }
        Ok(())
    }

    /// Waits for it to end by itself.
    ///
    /// # Errors
    ///
    /// If it still runs after `within`.
    pub async fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let name = self.name.clone();
        wait::eventually_within(&format!("{name} to end"), within, async || {
            self.exited()?.with_context(|| format!("{} still runs", self.name))
        })
        .await
    }

    /// Sends SIGTERM, as an operator or a kubelet does.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the signal.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Stops it with SIGSTOP: it keeps its connections and answers nothing.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the signal.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on after [`Self::pause`].
    ///
    /// # Errors
    ///
    /// If the kernel refuses the signal.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Sends SIGKILL, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the signal.
    pub fn kill9(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        Ok(())
    }

    /// Bytes of memory resident in RAM.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn rss_bytes(&self) -> Result<u64> {
        procfs::resident_bytes(self.id())
    }

    /// Bytes of memory resident in RAM that are no pages of files, as those of its program are.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn own_bytes(&self) -> Result<u64> {
        procfs::own_bytes(self.id())
    }

    /// The most bytes that were resident since it began, or since [`Self::forget_peak`].
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn peak_bytes(&self) -> Result<u64> {
        procfs::peak_bytes(self.id())
    }

    /// Makes [`Self::peak_bytes`] begin anew.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn forget_peak(&self) -> Result<()> {
        procfs::forget_peak(self.id())
    }

    /// CPU time spent so far.
    ///
    /// # Errors
    ///
    /// If it has ended.
    pub fn cpu_time(&self) -> Result<Duration> {
        procfs::cpu_time(self.id())
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        // Once it was waited for, its id may belong to another process.
        if self.exited()?.is_some() {
            return Ok(());
        }
        send(self.id(), signal).with_context(|| format!("cannot signal {}", self.name))
    }

    fn log_tail(&self) -> String {
        let text = self.printed().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// SIGTERM, and SIGKILL after the grace period.
    fn stop(&mut self) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(10);
        self.terminate()?;
        for _ in 0..GRACE.as_millis() / PAUSE.as_millis() {
            if self.exited()?.is_some() {
                return Ok(());
            }
            #[expect(clippy::disallowed_methods, reason = "what is dropped cannot await")]
            std::thread::sleep(PAUSE);
        }
        self.kill9()
    }
}

/// Sends a signal to the process of that id.
///
/// # Errors
///
/// If there is no such process, or the kernel refuses the signal.
pub fn send(id: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).with_context(|| format!("{id} is no process id"))?;
    kill_process(pid, signal).with_context(|| format!("cannot signal process {id}"))
}

fn spawn(program: &Path, args: &[String], log: &Path, folder: &Path) -> Result<Child> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot open the log {}", log.display()))?;
    let errors = file.try_clone().with_context(|| format!("cannot open the log {} twice", log.display()))?;
    Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

impl Drop for Process {
    fn drop(&mut self) {
        // A destructor cannot return an error, and a process that cannot be signalled is not ours any more.
        drop(self.stop());
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::Process;

    fn shell(name: &str, script: &str, logs: &Path) -> Process {
        Process::start(name, Path::new("/bin/sh"), &["-c", script], logs).expect("a shell must start")
    }

    #[tokio::test]
    async fn output_goes_to_the_log_and_the_status_is_returned() {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let mut process = shell("speaks", "echo out; echo err >&2; exit 3", logs.path());
        let status = process.wait(Duration::from_secs(10)).await.expect("it ends");
        assert_eq!(status.code(), Some(3));
        let log = process.printed().expect("the log exists");
        assert_eq!(log, "out\nerr\n");
        let error = process.must_run().expect_err("it has ended").to_string();
        assert!(error.contains("speaks") && error.contains("err"), "{error}");
    }

    #[test]
    fn dropping_the_guard_ends_the_process() {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let process = shell("sleeps", "exec sleep 600", logs.path());
        let proc = format!("/proc/{}", process.id());
        assert!(Path::new(&proc).exists());
        drop(process);
        assert!(!Path::new(&proc).exists());
    }
}
