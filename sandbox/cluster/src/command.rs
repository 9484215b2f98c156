//! Commands of `sandbox tell` and the terminal: parsing, execution and output.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::Engine;
use crate::nodes::Nodes;
use crate::nodes::object::condition;
use crate::{drain, resource_list::ResourceList};
use kcm_sandbox_apiserver::direct::DeleteOptions;
use kcm_sandbox_apiserver::json;
use kcm_sandbox_apiserver::{NODES, PODS};

/// Maximum number of pods in a list.
const SHOWN: usize = 200;
/// Maximum number of nodes that one command adds.
const MOST_NODES: usize = 1000;

/// Error of a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Unknown command.
    #[error("unknown command {word:?}{}; \"help\" lists all", nearest(.near.as_deref()))]
    UnknownCommand {
        /// Word that the user typed.
        word: String,
        /// The nearest known command.
        near: Option<String>,
    },
    /// Unknown node.
    #[error("unknown node {name:?}{}", nearest(.near.as_deref()))]
    UnknownNode {
        /// Node name that the user typed.
        name: String,
        /// The nearest known name.
        near: Option<String>,
    },
    /// Invalid arguments.
    #[error("use: {usage}")]
    Usage {
        /// Usage of the command.
        usage: &'static str,
    },
    /// The API rejected a request of the command.
    #[error("could not {action}: {message}")]
    Refused {
        /// The operation and its object.
        action: String,
        /// The API error.
        message: String,
    },
}

fn nearest(near: Option<&str>) -> String {
    near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Help,
    Nodes,
    Pods,
    Add,
    Stop,
    Start,
    Cordon,
    Uncordon,
    Drain,
    Lose,
}

/// Name, usage and description of each command.
const COMMANDS: [(&str, Command, &str, &str); 10] = [
    ("help", Command::Help, "help", "lists the commands"),
    ("nodes", Command::Nodes, "nodes", "lists the nodes"),
    ("pods", Command::Pods, "pods [NAMESPACE]", "lists the pods"),
    ("add", Command::Add, "add [COUNT]", "adds nodes"),
    ("stop", Command::Stop, "stop NODE", "stops the kubelet: its pods freeze, and it is found silent after 40 seconds"),
    ("start", Command::Start, "start NODE", "starts the kubelet again"),
    ("cordon", Command::Cordon, "cordon NODE", "keeps new pods off"),
    ("uncordon", Command::Uncordon, "uncordon NODE", "lets new pods on again"),
    ("drain", Command::Drain, "drain NODE", "cordons the node and evicts its pods, as budgets allow"),
    ("lose", Command::Lose, "lose NODE", "removes the node and all its pods at once"),
];

pub(crate) fn run(engine: &mut Engine, text: &str) -> Result<String, CommandError> {
    let mut words = text.split_whitespace();
    let Some(word) = words.next() else { return Ok(String::new()) };
    let known = COMMANDS.iter().find(|(name, ..)| *name == word);
    let Some((_, command, usage, _)) = known else {
        let near = closest(word, COMMANDS.iter().map(|(name, ..)| *name));
        return Err(CommandError::UnknownCommand { word: word.to_owned(), near });
    };
    let argument = words.next();
    if words.next().is_some() {
        return Err(CommandError::Usage { usage });
    }
    let plain = |answer: fn(&Engine) -> String| match argument {
        None => Ok(answer(engine)),
        Some(_) => Err(CommandError::Usage { usage }),
    };
    let node = || {
        let name = argument.ok_or(CommandError::Usage { usage })?;
        engine.nodes.names().find(|known| ***known == *name).cloned().ok_or_else(|| CommandError::UnknownNode {
            name: name.to_owned(),
            near: closest(name, engine.nodes.names().map(|name| &**name)),
        })
    };
    match command {
        Command::Help => plain(|_| help()),
        Command::Nodes => plain(nodes),
        Command::Pods => Ok(pods(engine, argument)),
        Command::Add => {
            let count =
                argument.map_or(Some(1), |text| text.parse().ok()).filter(|count| (1..=MOST_NODES).contains(count));
            let names = Nodes::add(&engine.api, count.ok_or(CommandError::Usage { usage })?);
            Ok(format!("added {}", names.join(", ")))
        }
        Command::Stop => node().map(|name| {
            engine.nodes.stop(&name);
            format!("{name} stopped")
        }),
        Command::Start => node().map(|name| {
            let now = engine.api.now().elapsed;
            engine.nodes.start(&name, now);
            engine.kubelets.wake(&engine.nodes, &name, now);
            format!("{name} started")
        }),
        Command::Cordon => cordon(engine, &node()?, true).map(|name| format!("{name} cordoned")),
        Command::Uncordon => {
            let name = node()?;
            engine.drains.stop(&name);
            cordon(engine, &name, false).map(|name| format!("{name} uncordoned"))
        }
        Command::Drain => {
            let name = cordon(engine, &node()?, true)?;
            let pods = engine.nodes.pods_of(&name).filter_map(|key| engine.api.get(&PODS, key));
            let count = pods.filter(|pod| !drain::stays(pod)).count();
            engine.drains.start(&name, engine.api.now().elapsed);
            Ok(format!("{name} cordoned, {count} pods to evict"))
        }
        Command::Lose => {
            let name = node()?;
            let options = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
            let pods: Vec<_> = engine.nodes.pods_of(&name).cloned().collect();
            let key = kcm_api::ObjectKey::cluster_scoped(&*name);
            engine.api.delete(&NODES, &key, &options).map_err(|status| CommandError::Refused {
                action: format!("delete node {name}"),
                message: status.message,
            })?;
            for pod in &pods {
                // Not found is success.
                drop(engine.api.delete(&PODS, pod, &options));
            }
            Ok(format!("{name} lost with {} pods", pods.len()))
        }
    }
}

fn cordon(engine: &Engine, name: &Arc<str>, cordoned: bool) -> Result<Arc<str>, CommandError> {
    drain::cordon(&engine.api, name, cordoned).map(|()| name.clone()).map_err(|status| CommandError::Refused {
        action: format!("{} node {name}", if cordoned { "cordon" } else { "uncordon" }),
        message: status.message,
    })
}

/// Returns the nearest known word, if one is near enough.
fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = known.map(|known| (strsim::damerau_levenshtein(word, known), known)).min()?;
    (near.0 <= 1 + word.len() / 4).then(|| near.1.to_owned())
}

fn help() -> String {
    let rows = COMMANDS.iter().map(|(_, _, usage, does)| vec![(*usage).to_owned(), (*does).to_owned()]);
    table(&rows.collect::<Vec<_>>())
}

fn nodes(engine: &Engine) -> String {
    let mut rows = vec![["NAME", "STATE", "PODS", "CPU", "MEMORY"].map(str::to_owned).to_vec()];
    for name in engine.nodes.names() {
        let Some(object) = engine.api.get(&NODES, &kcm_api::ObjectKey::cluster_scoped(&**name)) else { continue };
        let mut state = vec![match condition(&object, "Ready") {
            Some("True") => "Ready",
            Some("Unknown") => "Unknown",
            Some(_) | None => "NotReady",
        }];
        if engine.nodes.get(name).is_some_and(|node| !node.running) {
            state.push("stopped");
        }
        if engine.drains.contains(name) {
            state.push("draining");
        }
        if json::at(&object, &["spec", "unschedulable"]).is_some() {
            state.push("cordoned");
        }
        let capacity = ResourceList::read(json::at(&object, &["status", "capacity"]));
        rows.push(vec![
            name.to_string(),
            state.join(","),
            format!("{}/{}", engine.nodes.pods_of(name).count(), capacity.get("pods") / 1000),
            (capacity.get("cpu") / 1000).to_string(),
            format!("{}Gi", capacity.get("memory") / 1000 / (1 << 30)),
        ]);
    }
    table(&rows)
}

fn pods(engine: &Engine, namespace: Option<&str>) -> String {
    let mut rows = vec![["NAMESPACE", "NAME", "READY", "STATUS", "NODE"].map(str::to_owned).to_vec()];
    let all = engine.objects.get(&PODS).into_iter().flatten();
    let mut chosen = all.filter(|(key, _)| namespace.is_none() || key.namespace() == namespace);
    for (key, pod) in chosen.by_ref().take(SHOWN) {
        let pod = &*pod.value();
        let containers = json::list(pod, &["status", "containerStatuses"]);
        let ready = containers.iter().filter(|status| status["ready"] == true).count();
        rows.push(vec![
            key.namespace().unwrap_or_default().to_owned(),
            key.name().to_owned(),
            format!("{ready}/{}", json::list(pod, &["spec", "containers"]).len()),
            state_of(pod).to_owned(),
            json::text(pod, &["spec", "nodeName"]).unwrap_or("<none>").to_owned(),
        ]);
    }
    let more = chosen.count();
    let shown = table(&rows);
    if more > 0 { format!("{shown}\n… and {more} more") } else { shown }
}

/// Returns the state of a pod in one word.
fn state_of(pod: &Value) -> &str {
    if json::is_terminating(pod) {
        return "Terminating";
    }
    let statuses = ["initContainerStatuses", "containerStatuses"].map(|list| json::list(pod, &["status", list]));
    let waiting = statuses.into_iter().flatten().find_map(|status| {
        json::text(status, &["state", "waiting", "reason"]).filter(|reason| *reason != "PodInitializing")
    });
    waiting.or(json::text(pod, &["status", "phase"])).unwrap_or("Pending")
}

/// Formats rows as columns, two spaces apart.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_words_are_suggested() {
        let commands = || COMMANDS.iter().map(|(name, ..)| *name);
        for (word, expected) in
            [("drian", Some("drain")), ("node", Some("nodes")), ("strat", Some("start")), ("explode", None)]
        {
            assert_eq!(closest(word, commands()).as_deref(), expected, "{word}");
        }
        assert_eq!(closest("node-11", ["node-1", "node-2"].into_iter()).as_deref(), Some("node-1"));
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec!["A".to_owned(), "B".to_owned()], vec!["long".to_owned(), "x".to_owned()]];
        assert_eq!(table(&rows), "A     B\nlong  x");
    }
}
