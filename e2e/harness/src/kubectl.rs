//! kubectl as a process.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::binaries;
use crate::process::Process;
use crate::scenario::Case;

/// How a command ended.
pub struct Answer {
    /// Whether its exit code is 0.
    pub succeeded: bool,
    /// What it printed, standard error last.
    pub text: String,
}

/// kubectl in one namespace of a cluster.
pub struct Kubectl<'a> {
    /// The kubeconfig of its user.
    pub kubeconfig: &'a Path,
    /// The namespace of commands that name none.
    pub namespace: &'a str,
    /// The folder of its cache, of manifests and of logs.
    pub folder: &'a Path,
}

impl<'a> Kubectl<'a> {
    /// In the namespace of a scenario.
    pub fn of(case: &'a Case) -> Self {
        let plane = case.plane();
        Self { kubeconfig: plane.kubeconfig(), namespace: case.namespace(), folder: plane.logs() }
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub async fn run(&self, line: &str) -> Result<String> {
        let answer = self.ask(line, None).await?;
        ensure!(answer.succeeded, "`kubectl {line}` failed:\n{}", answer.text);
        Ok(answer.text)
    }

    /// As [`Kubectl::run`], for a command whose words hold spaces.
    pub async fn run_words(&self, words: &[String]) -> Result<String> {
        let answer = self.ask_words(words, None).await?;
        ensure!(answer.succeeded, "`kubectl {}` failed:\n{}", words.join(" "), answer.text);
        Ok(answer.text)
    }

    /// Runs a `diff`, which fails where there is a difference.
    pub async fn diff(&self, line: &str) -> Result<String> {
        Ok(self.ask(line, None).await?.text)
    }

    /// Runs a command that must fail, and returns what it printed.
    pub async fn refused(&self, line: &str) -> Result<String> {
        let answer = self.ask(line, None).await?;
        ensure!(!answer.succeeded, "`kubectl {line}` must fail:\n{}", answer.text);
        Ok(answer.text)
    }

    /// Opens an object in an editor.
    pub async fn edit(&self, object: &str, editor: &str) -> Result<String> {
        let answer = self.ask(&format!("edit {object}"), Some(editor)).await?;
        ensure!(answer.succeeded, "editing {object} failed:\n{}", answer.text);
        Ok(answer.text)
    }

    /// Runs a command whose words have no spaces.
    async fn ask(&self, line: &str, editor: Option<&str>) -> Result<Answer> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        self.ask_words(&words, editor).await
    }

    async fn ask_words(&self, words: &[String], editor: Option<&str>) -> Result<Answer> {
        let output = Command::new(binaries::control_plane("kubectl")?)
            .args(self.flags())
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder)
            .envs(editor.map(|editor| ("KUBE_EDITOR", editor)))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .context("cannot start kubectl")?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).context("kubectl did not print UTF-8")?;
        Ok(Answer { succeeded: output.status.success(), text })
    }

    /// Starts a command that goes on until dropped; its log is what it prints.
    pub fn start(&self, line: &str) -> Result<Process> {
        let program = binaries::control_plane("kubectl")?;
        let args: Vec<String> = self.flags().into_iter().chain(line.split_whitespace().map(str::to_owned)).collect();
        Process::start(&format!("{}-kubectl", self.namespace), &program, &args, self.folder)
    }

    /// Writes a manifest, and returns its path for `-f`.
    pub fn manifest(&self, object: &Value) -> Result<String> {
        let [kind, name] = [&object["kind"], &object["metadata"]["name"]].map(|it| it.as_str().unwrap_or_default());
        let path = self.folder.join(format!("{}-{kind}-{name}.json", self.namespace));
        std::fs::write(&path, object.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn flags(&self) -> [String; 2] {
        [format!("--kubeconfig={}", self.kubeconfig.display()), format!("--namespace={}", self.namespace)]
    }
}

/// The revisions that `rollout history` lists, with their causes.
pub fn revisions(history: &str) -> Vec<(u64, String)> {
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
