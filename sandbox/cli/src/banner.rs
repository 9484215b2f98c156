//! [`Banner`]: the message that a starting sandbox prints. Pure, except for reading the working directory.

use std::path::{Path, PathBuf};

use kcm_sandbox_conformance::Difference;

use crate::rows;
use crate::screen::WIDTH;

/// Column of the values.
const INDENT: usize = 15;

/// The facts that the message states.
#[derive(Debug, Clone)]
pub(super) struct Banner {
    pub(super) server: String,
    /// Other machines can reach the server.
    pub(super) exposed: bool,
    pub(super) kubeconfig: String,
    pub(super) nodes: usize,
    /// Number of objects loaded from manifests.
    pub(super) loaded: usize,
    /// Names of the running controllers.
    pub(super) controllers: Vec<String>,
    /// The URL of the manager's HTTPS port.
    pub(super) port: Option<String>,
    /// The URL of the manager's status page.
    pub(super) page: Option<String>,
    /// The socket as given on the command line.
    pub(super) socket: Option<PathBuf>,
    /// Commands are read from this terminal.
    pub(super) interactive: bool,
}

impl Banner {
    /// The message of a sandbox without the demo.
    pub(super) fn text(&self) -> String {
        format!(
            "A cluster runs in this process: nothing was installed, nothing will be left.\n\n\
             {}\n\
             Try, in another terminal:\n\n  \
             export KUBECONFIG={}\n  \
             kubectl create deployment web --image=shop:1.0 --replicas=5\n  \
             kubectl set image deployment/web shop=shop:2.0\n  \
             kubectl get pods --watch{}\n\n\
             {}Without kubectl, `sandbox --demo` shows the same in this terminal.\n\
             Ctrl-C ends it all.\n",
            self.facts(),
            quote(&self.kubeconfig),
            self.explanation(),
            self.commands(),
        )
    }

    /// The short message before the demo.
    pub(super) fn short(&self) -> String {
        let warning = if self.exposed { format!("{EXPOSED}.\n") } else { String::new() };
        let page = self.page.as_ref().map(|url| format!("Status page: {url}\n")).unwrap_or_default();
        format!(
            "A cluster (nodes: {}) runs in this process; watch it work. Ctrl-C ends it.\n{page}{warning}",
            self.nodes
        )
    }

    /// The command that explains an object, if the manager has a port.
    fn explanation(&self) -> String {
        self.port.as_ref().map_or_else(String::new, |url| {
            let flags = format!("--server={url} --insecure-skip-tls-verify");
            format!("\n  kube-controller-manager explain deployment/web \\\n    {flags}")
        })
    }

    fn facts(&self) -> String {
        let controllers = if self.controllers.is_empty() { "none".to_owned() } else { wrap(&self.controllers) };
        let mut facts = vec![("API server", self.server.clone())];
        if self.exposed {
            facts.push(("", EXPOSED.to_owned()));
        }
        facts.extend([
            ("nodes", self.nodes.to_string()),
            ("controllers", controllers),
            ("kubeconfig", self.kubeconfig.clone()),
        ]);
        facts.extend(self.port.iter().map(|url| ("manager", url.clone())));
        facts.extend(self.page.iter().map(|url| ("status page", url.clone())));
        if self.loaded > 0 {
            facts.push(("manifests", format!("{} loaded", self.loaded)));
        }
        let lines: Vec<String> = facts.iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect();
        lines.concat()
    }

    /// The command that sends commands to nodes, if that is possible.
    fn commands(&self) -> String {
        let elsewhere = self.socket.as_ref().map(|path| {
            let is_found = path == Path::new(rows::SOCKET);
            let flag = if is_found { String::new() } else { format!(" --socket={}", quote(&absolute(path))) };
            format!("`sandbox tell{flag} help`")
        });
        match (self.interactive, elsewhere) {
            (true, Some(elsewhere)) => format!("Type `help` for what nodes can do; elsewhere, {elsewhere} lists it.\n"),
            (true, None) => "Type `help` for what nodes can do.\n".to_owned(),
            (false, Some(elsewhere)) => format!("{elsewhere} lists what nodes can do.\n"),
            (false, None) => String::new(),
        }
    }
}

const EXPOSED: &str = "open to other machines: the kubeconfig's token is all they need";

/// Wraps words to lines.
fn wrap(words: &[String]) -> String {
    let mut lines = vec![String::new()];
    for (at, word) in words.iter().enumerate() {
        let word = if at + 1 < words.len() { format!("{word},") } else { word.clone() };
        let line = lines.last_mut().expect("there is a line from the start");
        if line.is_empty() {
            line.push_str(&word);
        } else if INDENT + line.len() + 1 + word.len() <= WIDTH {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines.join(&format!("\n{:INDENT$}", ""))
}

/// Returns the absolute path.
pub(super) fn absolute(path: &Path) -> String {
    std::path::absolute(path).as_deref().unwrap_or(path).display().to_string()
}

/// Quotes a string as one shell word.
fn quote(text: &str) -> String {
    if text.chars().all(|letter| letter.is_alphanumeric() || "/._-+=:@%,".contains(letter)) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Formats the known differences from kube-apiserver.
pub(super) fn differences(differences: &[Difference]) -> String {
    let entries = differences.iter().map(|Difference { what, why }| format!("{what}\n    {}\n", why.trim()));
    let entries: String = entries.collect();
    format!("Where the sandbox knowingly differs from kube-apiserver 1.37:\n\n{entries}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner() -> Banner {
        Banner {
            server: "https://127.0.0.1:6443".to_owned(),
            exposed: false,
            kubeconfig: "/home/jane/sandbox.kubeconfig".to_owned(),
            nodes: 3,
            loaded: 0,
            controllers: vec!["deployment-controller".to_owned(), "replicaset-controller".to_owned()],
            port: None,
            page: None,
            socket: Some("sandbox.sock".into()),
            interactive: true,
        }
    }

    fn is_narrow(text: &str) -> bool {
        text.lines().all(|line| line.len() <= WIDTH)
    }

    #[test]
    fn it_names_what_runs_and_three_commands_to_try() {
        let text = banner().text();
        assert!(text.contains("\n  controllers  deployment-controller, replicaset-controller\n"), "{text}");
        assert!(text.contains("\n  export KUBECONFIG=/home/jane/sandbox.kubeconfig\n"), "{text}");
        assert_eq!(text.matches("\n  kubectl ").count(), 3, "{text}");
        assert!(is_narrow(&text), "{text}");
        assert!(is_narrow(&banner().short()));
    }

    #[test]
    fn with_a_port_it_says_how_an_object_is_explained() {
        let text = Banner { port: Some("https://127.0.0.1:10257".to_owned()), ..banner() }.text();
        let expected = "\n  kubectl get pods --watch\n  kube-controller-manager explain deployment/web \\\n    \
                        --server=https://127.0.0.1:10257 --insecure-skip-tls-verify\n\n";
        assert!(text.contains(expected) && is_narrow(&text), "{text}");
    }

    #[test]
    fn all_controllers_of_upstream_fit_into_the_window() {
        let controllers =
            kcm_controller_manager::UPSTREAM.iter().map(|controller| controller.name.to_owned()).collect();
        let text = Banner { controllers, ..banner() }.text();
        assert!(is_narrow(&text), "{text}");
        assert!(text.contains("\n               certificatesigningrequest-approving-controller,"), "{text}");
    }

    #[test]
    fn it_names_the_status_page() {
        let url = "https://127.0.0.1:40123/debug/ui";
        let text = Banner { page: Some(url.to_owned()), ..banner() };
        assert!(text.text().contains(&format!("\n  status page  {url}\n")), "{}", text.text());
        assert!(text.short().ends_with(&format!("\nStatus page: {url}\n")), "{}", text.short());
    }

    #[test]
    fn it_warns_where_other_machines_reach_it() {
        let open = Banner { server: "https://0.0.0.0:6443".to_owned(), exposed: true, ..banner() };
        for text in [open.text(), open.short()] {
            assert!(text.contains("open to other machines") && is_narrow(&text), "{text}");
        }
        assert!(!banner().text().contains("open to"));
    }

    #[test]
    fn it_says_how_to_send_commands_to_nodes() {
        let hint = |interactive, socket: Option<&str>| {
            let text = Banner { interactive, socket: socket.map(PathBuf::from), ..banner() }.text();
            text.lines().find(|line| line.contains("what nodes can do")).map(str::to_owned)
        };
        assert_eq!(
            hint(true, Some("sandbox.sock")).as_deref(),
            Some("Type `help` for what nodes can do; elsewhere, `sandbox tell help` lists it.")
        );
        assert_eq!(hint(true, None).as_deref(), Some("Type `help` for what nodes can do."));
        assert_eq!(
            hint(false, Some("/tmp/s")).as_deref(),
            Some("`sandbox tell --socket=/tmp/s help` lists what nodes can do.")
        );
        assert_eq!(hint(false, None), None);
    }

    #[test]
    fn paths_survive_the_shell() {
        for (path, expected) in [
            ("/tmp/config", "/tmp/config"),
            ("/my files/config", "'/my files/config'"),
            ("/it's/$HOME", r"'/it'\''s/$HOME'"),
            ("/größe", "/größe"),
        ] {
            assert_eq!(quote(path), expected);
        }
    }
}
