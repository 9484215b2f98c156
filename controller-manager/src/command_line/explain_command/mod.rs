//! The sub-command `explain`, which asks a running manager for the reasons of its actions on an object.

mod error;
mod port;
mod target;

use kcm_config::{Initial, Row};
use kcm_framework::error_chain;
use kcm_framework::explain::{KeyExplanation, QueueStatus};
use serde::Deserialize;

use error::ExplainError;
use port::Port;
use target::Target;

use crate::command_line::exit::Exit;
use crate::command_line::output::print;
use crate::command_line::subcommand::{Action, Failure, Invocation, Subcommand};

const SECTION: &str = "Explain";

const SERVER: Row = Row::new("server", SECTION, Initial::String("https://127.0.0.1:10257"))
    .help("Address of the manager's HTTPS port, as https://HOST:PORT.");
const NAMESPACE: Row =
    Row::new("namespace", SECTION, Initial::String("default")).short('n').help("Namespace of the object.");
const TOKEN: Row = Row::new("token", SECTION, Initial::String(""))
    .help("Bearer token for the manager. Overrides the credentials in --kubeconfig.");
const CERTIFICATE_AUTHORITY: Row = Row::new("certificate-authority", SECTION, Initial::String(""))
    .help("PEM file with the manager's serving certificate or its CA.");
const INSECURE: Row = Row::new("insecure-skip-tls-verify", SECTION, Initial::Bool(false))
    .help("Do not verify the manager's serving certificate. The response may then come from another server.");
const OUTPUT: Row = Row::new("output", SECTION, Initial::String(""))
    .short('o')
    .help("Output format: json. Empty: lines.")
    .check(|value| {
        let is_known = ["", "json"].contains(&value.to_string().as_str());
        if is_known { Ok(()) } else { Err("must be json, or be left out".to_owned()) }
    });

/// Explains a key of a running manager.
pub(crate) const EXPLAIN: Subcommand = Subcommand {
    name: "explain",
    usages: &["explain RESOURCE/NAME [-n NAMESPACE] [--server=URL] [FLAGS]"],
    rows: &[CERTIFICATE_AUTHORITY, INSECURE, NAMESPACE, OUTPUT, SERVER, TOKEN],
    file_after: None,
    quiet: true,
    run,
};

#[derive(Deserialize)]
struct Queues {
    queues: Vec<QueueStatus>,
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<KeyExplanation>,
}

/// The objects of a name, as a controller knows them whose keys are uids.
#[derive(Deserialize)]
struct Objects {
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    resource: String,
    kind: String,
    uid: String,
}

fn run(Invocation { settings, manager: _ }: Invocation) -> Result<Action, Vec<String>> {
    let operands: Vec<&str> = settings.operands().iter().map(String::as_str).collect();
    let namespace: String = settings.get("namespace").unwrap_or_default();
    let target = Target::parse(&operands, &namespace).ok_or_else(|| {
        vec!["explain: name one object, as `explain deployment/web -n shop` or `explain node/a`".to_owned()]
    })?;
    let port = Port::of(&settings);
    let is_json = settings.get::<String>("output").is_ok_and(|output| output == "json");
    Ok(Action::Run(Box::new(move |stop| {
        Box::pin(async move {
            let Some(explained) = stop.drain.run_until_cancelled(explain(&port, &target)).await else { return Ok(()) };
            let keys =
                explained.map_err(|error| Failure { exit: Exit::Refused, reasons: vec![error_chain(&error)] })?;
            let exit = print(&rendered(&keys, is_json));
            if exit == Exit::Stopped { Ok(()) } else { Err(Failure { exit, reasons: Vec::new() }) }
        })
    })))
}

fn rendered(keys: &[KeyExplanation], is_json: bool) -> String {
    if is_json {
        return serde_json::to_string_pretty(&serde_json::json!({ "keys": keys })).unwrap_or_default() + "\n";
    }
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The explanations of all controllers whose keys name objects of the resource.
async fn explain(port: &Port, target: &Target) -> Result<Vec<KeyExplanation>, ExplainError> {
    let client = port.client().await?;
    let Queues { queues } = port.get(&client, "/debug/queues").await?;
    let mut controllers: Vec<&str> =
        queues.iter().filter(|queue| target.is_of(queue)).map(|queue| queue.controller.as_str()).collect();
    controllers.dedup();
    let by_uid = explain_by_uid(port, &client, target, &queues).await?;
    if controllers.is_empty() && by_uid.is_empty() {
        let mut known: Vec<&str> = queues.iter().filter_map(|queue| queue.resource.as_deref()).collect();
        known.sort_unstable();
        known.dedup();
        let (server, resource) = (port.server.clone(), target.resource.clone());
        return Err(ExplainError::UnknownResource { server, resource, known: known.join(", ") });
    }
    let mut explained = Vec::new();
    for controller in controllers {
        let Keys { keys } = port.get(&client, &target.path(controller, true)).await?;
        let is_there = keys.iter().any(|key| key.exists == Some(true) || !key.reconciles.is_empty());
        // The objects of a cluster-scoped resource have no namespace.
        let of_cluster: Keys = if is_there {
            Keys { keys: Vec::new() }
        } else {
            port.get(&client, &target.path(controller, false)).await?
        };
        let is_of_cluster = of_cluster.keys.iter().any(|key| key.exists == Some(true) || !key.reconciles.is_empty());
        let keys = if is_of_cluster { of_cluster.keys } else { keys };
        explained.extend(keys.into_iter().filter(|key| {
            queues
                .iter()
                .any(|queue| queue.controller == key.controller && queue.name == key.name && target.is_of(queue))
        }));
    }
    // Each object is known there, and most were never processed.
    let has_none = explained.is_empty();
    explained.extend(by_uid.into_iter().filter(|key| has_none || !key.reconciles.is_empty()));
    Ok(explained)
}

/// The explanations of controllers whose keys are the uids of objects: they find the uid of a name at `/uids`.
async fn explain_by_uid(
    port: &Port,
    client: &kube::Client,
    target: &Target,
    queues: &[QueueStatus],
) -> Result<Vec<KeyExplanation>, ExplainError> {
    let without_resource = queues.iter().filter(|queue| queue.resource.is_none());
    let mut controllers: Vec<&str> = without_resource.map(|queue| queue.controller.as_str()).collect();
    controllers.dedup();
    let mut explained = Vec::new();
    for controller in controllers {
        let path = format!("/debug/controllers/{controller}");
        let query = format!("{path}/uids?namespace={}&name={}", target.namespace, target.name);
        let Objects { objects } = match port.get(client, &query).await {
            Ok(objects) => objects,
            Err(ExplainError::Refused { code: 404, .. }) => continue,
            Err(error) => return Err(error),
        };
        for object in objects.iter().filter(|object| target.names(&object.resource, Some(&object.kind))) {
            let Keys { keys } = port.get(client, &format!("{path}/keys/{}", object.uid)).await?;
            explained.extend(keys);
        }
    }
    Ok(explained)
}
