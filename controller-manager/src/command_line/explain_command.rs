//! The sub-command `explain`, which asks a running manager for the reasons of its actions on an object.

use std::error::Error;
use std::fs;

use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kcm_config::{Effective, Initial, Row};
use kcm_framework::client::{connect, load_config};
use kcm_framework::explain::{KeyExplanation, QueueStatus};
use kcm_framework::{BoxError, error_chain};
use kube::client::Body;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;

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

/// Short names of kubectl, with the resources of controllers.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("cj", "cronjobs"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("ep", "endpoints"),
    ("hpa", "horizontalpodautoscalers"),
    ("no", "nodes"),
    ("ns", "namespaces"),
    ("pdb", "poddisruptionbudgets"),
    ("po", "pods"),
    ("pv", "persistentvolumes"),
    ("pvc", "persistentvolumeclaims"),
    ("quota", "resourcequotas"),
    ("rc", "replicationcontrollers"),
    ("rs", "replicasets"),
    ("sa", "serviceaccounts"),
    ("sts", "statefulsets"),
    ("svc", "services"),
];

/// The object to explain, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    /// A kind, a resource, or a short name.
    resource: String,
    namespace: String,
    name: String,
}

/// The manager's HTTPS port, and the way to reach it.
struct Port {
    server: String,
    kubeconfig: Option<String>,
    token: String,
    certificate_authority: String,
    skips_verification: bool,
}

/// An error that prevents an explanation.
#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error("--server is {0:?}, expected the address of the manager's port, such as https://127.0.0.1:10257")]
    Server(String),
    #[error("cannot read the certificate of --certificate-authority={file}")]
    Authority {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the certificates in --certificate-authority={0} are not PEM")]
    Pem(String),
    #[error(transparent)]
    Credentials(kcm_framework::client::LoadError),
    #[error("cannot create a client for {server}")]
    Client {
        server: String,
        #[source]
        source: kcm_framework::client::StackError,
    },
    #[error(
        "cannot reach {server}: check that a manager with that --secure-port runs there, and that --server is its address"
    )]
    Unreachable {
        server: String,
        #[source]
        source: BoxError,
    },
    #[error(
        "the certificate of {server} is not trusted: give --certificate-authority=FILE, or --insecure-skip-tls-verify if \
         no other server can be there"
    )]
    Certificate {
        server: String,
        #[source]
        source: BoxError,
    },
    #[error("{server} rejects the credentials (401): give another --token or --kubeconfig")]
    Unauthorized { server: String },
    #[error(
        "{server} forbids get of {path} (403: {message}): give a --token or --kubeconfig of a user whose ClusterRole \
         allows get of the nonResourceURLs /debug/*"
    )]
    Forbidden { path: String, server: String, message: String },
    #[error("{server} cannot serve {path} ({code}: {message})")]
    Refused { path: String, server: String, code: u16, message: String },
    #[error("the response of {server} to {path} does not fit this version of the controller manager")]
    Response {
        path: String,
        server: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("no controller of {server} reconciles {resource:?}; running controllers reconcile: {known}")]
    UnknownResource { server: String, resource: String, known: String },
}

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

impl Target {
    /// The target of `RESOURCE/NAME` or `RESOURCE NAME`.
    fn parse(operands: &[&str], namespace: &str) -> Option<Self> {
        let (resource, name) = match operands {
            [operand] => operand.split_once('/')?,
            [resource, name] => (*resource, *name),
            _other => return None,
        };
        let is_named = !resource.is_empty() && !name.is_empty() && !name.contains('/');
        let (resource, namespace, name) = (resource.to_ascii_lowercase(), namespace.to_owned(), name.to_owned());
        is_named.then_some(Self { resource, namespace, name })
    }

    /// Returns `true` if the keys of a queue name objects of the resource.
    fn is_of(&self, queue: &QueueStatus) -> bool {
        queue.resource.as_ref().is_some_and(|resource| self.names(resource, queue.kind.as_deref()))
    }

    /// Returns `true` if the name means this resource: its kind, its plural with or without group, or its short name.
    fn names(&self, resource: &str, kind: Option<&str>) -> bool {
        let plural = resource.split_once('.').map_or(resource, |(plural, _)| plural);
        let short = SHORT_NAMES.iter().find(|(short, _)| *short == self.resource).map(|(_, plural)| *plural);
        [resource, plural].contains(&short.unwrap_or(&self.resource))
            || kind.is_some_and(|kind| kind.to_ascii_lowercase() == self.resource)
    }

    /// The paths of the key in a controller: with its namespace, and of a cluster-scoped object.
    fn path(&self, controller: &str, is_namespaced: bool) -> String {
        let namespace = if is_namespaced { format!("{}/", self.namespace) } else { String::new() };
        format!("/debug/controllers/{controller}/keys/{namespace}{}", self.name)
    }
}

impl Port {
    fn of(settings: &Effective) -> Self {
        let text = |flag: &str| settings.get::<String>(flag).unwrap_or_default();
        let kubeconfig = text("kubeconfig");
        Self {
            server: text("server"),
            kubeconfig: (!kubeconfig.is_empty()).then_some(kubeconfig),
            token: text("token"),
            certificate_authority: text("certificate-authority"),
            skips_verification: settings.get("insecure-skip-tls-verify").unwrap_or(false),
        }
    }

    async fn client(&self) -> Result<kube::Client, ExplainError> {
        let url: http::Uri = self.server.parse().map_err(|_| ExplainError::Server(self.server.clone()))?;
        let mut config = match &self.kubeconfig {
            Some(file) => load_config(Some(file.as_ref()), Some(url)).await.map_err(ExplainError::Credentials)?,
            None => kube::Config::new(url),
        };
        config.accept_invalid_certs = self.skips_verification;
        if !self.token.is_empty() {
            config.auth_info =
                kube::config::AuthInfo { token: Some(SecretString::from(self.token.clone())), ..Default::default() };
        }
        if !self.certificate_authority.is_empty() {
            let file = self.certificate_authority.clone();
            let pem = fs::read(&file).map_err(|source| ExplainError::Authority { file: file.clone(), source })?;
            config.root_cert = Some(certificates(&pem).ok_or(ExplainError::Pem(file))?);
        }
        connect(&config).map_err(|source| ExplainError::Client { server: self.server.clone(), source })
    }

    fn unreachable(&self, error: kube::Error) -> ExplainError {
        let server = self.server.clone();
        // The text of kube's error repeats its source.
        let source = if let kube::Error::Service(source) = error { source } else { error.into() };
        if is_of_certificate(source.as_ref()) {
            ExplainError::Certificate { server, source }
        } else {
            ExplainError::Unreachable { server, source }
        }
    }

    async fn get<T: DeserializeOwned>(&self, client: &kube::Client, path: &str) -> Result<T, ExplainError> {
        let (path, server) = (path.to_owned(), self.server.clone());
        let request = Request::get(&path).body(Body::empty()).map_err(|_| ExplainError::Server(server.clone()))?;
        let response = client.send(request).await.map_err(|error| self.unreachable(error))?;
        let code = response.status();
        let body = response.into_body().collect().await.map_err(|error| self.unreachable(error))?.to_bytes();
        let message = || message_of(&body);
        match code {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => return Err(ExplainError::Unauthorized { server }),
            StatusCode::FORBIDDEN => return Err(ExplainError::Forbidden { path, server, message: message() }),
            code => return Err(ExplainError::Refused { path, server, code: code.as_u16(), message: message() }),
        }
        serde_json::from_slice(&body).map_err(|source| ExplainError::Response { path, server, source })
    }
}

/// The message of a `Status`, or the text that was returned instead.
fn message_of(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    let status = serde_json::from_slice::<Status>(body);
    status.map_or_else(|_| String::from_utf8_lossy(body).trim().to_owned(), |status| status.message)
}

/// Returns `true` if a connection failed because the certificate of the server is not trusted.
fn is_of_certificate(error: &(dyn Error + 'static)) -> bool {
    // An I/O error does not return the wrapped error as its source.
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    matches!(error.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || wrapped.is_some_and(|wrapped| is_of_certificate(wrapped))
        || error.source().is_some_and(is_of_certificate)
}

/// The certificates of a PEM file.
fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all: Vec<Vec<u8>> = all.ok()?.iter().map(|certificate| certificate.to_vec()).collect();
    (!all.is_empty()).then_some(all)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn target(resource: &str) -> Target {
        Target::parse(&[resource, "web"], "shop").expect("it names an object")
    }

    fn queue() -> QueueStatus {
        serde_json::from_value(serde_json::json!({ "resource": "deployments.apps", "kind": "Deployment" }))
            .expect("it is the status of a queue")
    }

    #[test]
    fn an_object_is_named_as_for_kubectl() {
        let web = Target { resource: "deployment".to_owned(), namespace: "shop".to_owned(), name: "web".to_owned() };
        assert_eq!(Target::parse(&["Deployment/web"], "shop"), Some(web.clone()));
        assert_eq!(Target::parse(&["deployment", "web"], "shop"), Some(web.clone()));
        for wrong in [&["web"][..], &[], &["deployment/"], &["a/b/c"], &["a", "b", "c"]] {
            assert_eq!(Target::parse(wrong, "shop"), None, "{wrong:?}");
        }
        assert_eq!(web.path("c", true), "/debug/controllers/c/keys/shop/web");
        assert_eq!(web.path("c", false), "/debug/controllers/c/keys/web");
    }

    #[test]
    fn a_resource_is_known_by_its_kind_its_plural_and_its_short_name() {
        for resource in ["deployment", "Deployment", "deployments", "deployments.apps", "deploy"] {
            assert!(target(resource).is_of(&queue()), "{resource}");
        }
        for resource in ["replicaset", "deployments.example.com", "rs", "apps"] {
            assert!(!target(resource).is_of(&queue()), "{resource}");
        }
        assert!(!target("deployment").is_of(&QueueStatus::default()), "its keys are no objects");
    }
}
