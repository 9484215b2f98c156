//! A program of this workspace as a process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};

/// Longer than anything takes on a busy machine; only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Exit code and output of a program that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Returns the errors that it printed, a line for each.
    pub fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect()
    }

    /// The warnings that it logged.
    pub fn warnings(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| is_at_level('W', line)).collect()
    }

    /// Its errors, given that it refused to start for them.
    #[track_caller]
    pub fn refusals(&self) -> Vec<&str> {
        assert_eq!((self.code, self.stdout.as_str()), (Some(1), ""), "{}", self.stderr);
        self.errors()
    }
}

/// A command with only the variables that the test gives: the environment of the test run must not change its settings.
/// Tests run at the same time, so a manager has no HTTPS port unless a flag of the test names one.
fn command(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().stdin(Stdio::null());
    if arguments.first() != Some(&"config") {
        command.env("KCM_SECURE_PORT", "0");
    }
    command.envs(variables.iter().copied());
    command
}

/// Runs a program to its end.
pub fn run(program: &str, arguments: &[&str]) -> Ended {
    run_with(program, arguments, &[])
}

/// Runs a program to its end, with variables.
pub fn run_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    ended(&mut command(program, arguments, variables))
}

/// Runs a program in a folder to its end.
pub fn run_in(folder: &Folder, program: &str, arguments: &[&str]) -> Ended {
    ended(command(program, arguments, &[]).current_dir(folder))
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("the program must start");
    let text = |bytes| String::from_utf8(bytes).expect("programs print UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A running program; it is killed when this is dropped.
pub struct Process {
    child: Child,
    output: Pipe<ChildStdout>,
    log: Pipe<ChildStderr>,
    expected_errors: Vec<&'static str>,
}

/// Output of a program, line by line.
struct Pipe<R> {
    lines: Lines<BufReader<R>>,
    seen: String,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(pipe: Option<R>) -> Self {
        let pipe = pipe.expect("it is a pipe");
        Self { lines: BufReader::new(pipe).lines(), seen: String::new() }
    }

    async fn next(&mut self) -> Option<String> {
        let line = self.lines.next_line().await.expect("programs print UTF-8")?;
        writeln!(self.seen, "{line}").expect("a string takes everything");
        Some(line)
    }

    async fn rest(&mut self) {
        while self.next().await.is_some() {}
    }

    async fn until(&mut self, text: &str, is_it: impl Fn(&str) -> bool) -> String {
        let reading = async {
            while let Some(line) = self.next().await {
                if is_it(&line) {
                    return Some(line);
                }
            }
            None
        };
        let found = tokio::time::timeout(PATIENCE, reading).await.ok().flatten();
        found.unwrap_or_else(|| panic!("it never said {text:?}, but:\n{}", self.seen))
    }
}

impl Process {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, |_| {})
    }

    /// Starts a program in a way of one's own.
    pub fn start_with(program: &str, arguments: &[&str], more: impl FnOnce(&mut Command)) -> Self {
        let mut command = command(program, arguments, &[]);
        more(&mut command);
        let mut command = tokio::process::Command::from(command);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program must start");
        let (output, log) = (Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take()));
        Self { child, output, log, expected_errors: Vec::new() }
    }

    /// Announces errors in the log whose line contains `text`; any other error fails the test at the end.
    pub fn expect_error(&mut self, text: &'static str) {
        self.expected_errors.push(text);
    }

    /// Waits for a line of the log that has `text` in it, and returns it.
    pub async fn says(&mut self, text: &str) -> String {
        self.log.until(text, |line| line.contains(text)).await
    }

    /// Waits for a warning in the log, and returns its line.
    pub async fn warns(&mut self) -> String {
        self.log.until("a warning", |line| is_at_level('W', line)).await
    }

    /// Waits for a printed line that has `text` in it, and returns it.
    pub async fn prints(&mut self, text: &str) -> String {
        self.output.until(text, |line| line.contains(text)).await
    }

    /// All that has been printed and waited for.
    pub fn printed(&self) -> &str {
        &self.output.seen
    }

    /// Types something, if its standard input is a pipe.
    pub async fn types(&mut self, text: &str) {
        let input = self.child.stdin.as_mut().expect("its standard input is a pipe");
        input.write_all(text.as_bytes()).await.expect("it must listen");
    }

    /// Closes its standard input.
    pub fn closes_input(&mut self) {
        drop(self.child.stdin.take());
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("it must still run");
        let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("ids are positive");
        kill_process(id, signal).expect("it must take signals");
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it must still run")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the kernel knows").is_none()
    }

    /// Lines of the log at error level, and of caught panics.
    fn unexpected_errors(&self) -> Vec<&str> {
        let is_error = |line: &&str| is_at_level('E', line) || line.contains(" panicked at ");
        let errors = self.log.seen.lines().filter(is_error);
        errors.filter(|line| !self.expected_errors.iter().any(|expected| line.contains(expected))).collect()
    }

    /// Waits for its end, and returns all that it printed and logged.
    pub async fn ended(mut self) -> Ended {
        let ending = async {
            tokio::join!(self.output.rest(), self.log.rest());
            self.child.wait().await.expect("the kernel knows")
        };
        let status = tokio::time::timeout(PATIENCE, ending).await;
        let status = status.unwrap_or_else(|_| panic!("it never ended:\n{}", self.log.seen));
        let unexpected = self.unexpected_errors();
        assert!(unexpected.is_empty(), "errors that the test did not announce:\n{}", unexpected.join("\n"));
        Ended { code: status.code(), stdout: self.output.seen, stderr: self.log.seen }
    }
}

/// Returns `true` if a log line is at a level: `E` or `W`, with the date behind it.
pub fn is_at_level(level: char, line: &str) -> bool {
    let date = line.strip_prefix(level).and_then(|rest| rest.split_once(' '));
    date.is_some_and(|(date, _)| date.len() == 4 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A folder with files for a program to read, which vanishes with this.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("there must be room for a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("there must be room for a file");
        path.display().to_string()
    }

    /// Writes a kubeconfig for a server, and returns the flag that names it.
    pub fn kubeconfig(&self, cluster: &str) -> String {
        self.kubeconfig_of(cluster, "{}")
    }

    /// As [`kubeconfig`](Self::kubeconfig), for a user.
    pub fn kubeconfig_of(&self, cluster: &str, user: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
             clusters:\n- name: k\n  cluster: {cluster}\n\
             users:\n- name: u\n  user: {user}\n"
        );
        format!("--kubeconfig={}", self.file("kubeconfig", &text))
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self.0.path()
    }
}
