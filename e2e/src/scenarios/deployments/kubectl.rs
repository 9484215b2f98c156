//! kubectl, as a person at a terminal uses it.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::binaries;
use crate::process::Process;
use crate::suite::Case;

/// What a person sees after a command.
pub(super) struct Answer {
    pub(super) succeeded: bool,
    /// What it printed, complaints last.
    pub(super) text: String,
}

/// kubectl in the namespace of a scenario.
pub(super) struct Kubectl<'a> {
    case: &'a Case,
}

impl<'a> Kubectl<'a> {
    pub(super) fn of(case: &'a Case) -> Self {
        Self { case }
    }

    /// Runs a command that is to succeed, and returns what it printed.
    pub(super) async fn run(&self, line: &str) -> Result<String> {
        let answer = self.ask(line, None).await?;
        ensure!(answer.succeeded, "`kubectl {line}` failed:\n{}", answer.text);
        Ok(answer.text)
    }

    /// Runs a command that is to fail, and returns its complaint.
    pub(super) async fn refused(&self, line: &str) -> Result<String> {
        let answer = self.ask(line, None).await?;
        ensure!(!answer.succeeded, "`kubectl {line}` was to fail:\n{}", answer.text);
        Ok(answer.text)
    }

    /// Opens an object in an editor.
    pub(super) async fn edit(&self, object: &str, editor: &str) -> Result<String> {
        let answer = self.ask(&format!("edit {object}"), Some(editor)).await?;
        ensure!(answer.succeeded, "editing {object} failed:\n{}", answer.text);
        Ok(answer.text)
    }

    /// Runs a command of words without spaces.
    async fn ask(&self, line: &str, editor: Option<&str>) -> Result<Answer> {
        let output = Command::new(binaries::control_plane("kubectl")?)
            .args(self.flags())
            .args(line.split_whitespace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.case.plane().logs())
            .envs(editor.map(|editor| ("KUBE_EDITOR", editor)))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot start kubectl")?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).context("kubectl printed no text")?;
        Ok(Answer { succeeded: output.status.success(), text })
    }

    /// Starts a command that goes on until dropped; its log is what it prints.
    pub(super) fn start(&self, line: &str) -> Result<Process> {
        let program = binaries::control_plane("kubectl")?;
        let args: Vec<String> = self.flags().into_iter().chain(line.split_whitespace().map(str::to_owned)).collect();
        Process::start(&format!("{}-kubectl", self.case.namespace()), &program, &args, self.case.plane().logs())
    }

    /// Writes a manifest, and returns its path for `-f`.
    pub(super) fn manifest(&self, object: &Value) -> Result<String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = self.case.plane().logs().join(format!("{}-{name}.json", self.case.namespace()));
        std::fs::write(&path, object.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn flags(&self) -> [String; 2] {
        [
            format!("--kubeconfig={}", self.case.plane().kubeconfig().display()),
            format!("--namespace={}", self.case.namespace()),
        ]
    }
}

/// The revisions that `rollout history` lists, with their causes.
pub(super) fn revisions(history: &str) -> Vec<(u64, String)> {
    let rows = history.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    rows.filter_map(|(revision, cause)| Some((revision.parse().ok()?, cause.trim().to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::revisions;

    #[test]
    fn a_history_is_read_as_its_rows() {
        let history = "deployment.apps/web \nREVISION  CHANGE-CAUSE\n2         <none>\n10        two words\n\n";
        assert_eq!(revisions(history), [(2, "<none>".to_owned()), (10, "two words".to_owned())]);
    }
}
