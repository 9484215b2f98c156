//! The operator of `examples/website` with plain kube-rs: `Controller`, `finalizer`, `Recorder`, server-side apply.
//!
//! It exists to be compared with that operator. The kind, its decisions and the host names are the same code.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kcm_example_website::hosts::{HostError, Hosts};
use kcm_example_website::website::{FINALIZER, HostState, MANAGER, Website, WebsiteStatus};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Error as FinalizerError, Event as FinalizerEvent, finalizer};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};

/// The error of a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error("a request failed")]
    Api(#[from] kube::Error),
    /// The host name cannot be published or freed.
    #[error("the host name cannot be used")]
    Host(#[from] HostError),
    /// The finalizer cannot be set or removed.
    #[error("the finalizer cannot be set or removed")]
    Finalizer(#[source] Box<FinalizerError<Self>>),
}

struct Context {
    client: Client,
    recorder: Recorder,
    hosts: Hosts,
    published: Counter,
}

/// Runs the operator until `stop`.
///
/// # Errors
/// The kind is not served: kube-rs would retry its watch for ever without a word to the caller.
pub async fn run(
    client: Client,
    hosts: Hosts,
    published: Counter,
    concurrency: u16,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) -> Result<(), kube::Error> {
    let websites = Api::<Website>::all(client.clone());
    websites.list(&kube::api::ListParams::default().limit(1)).await?;
    let recorder = Recorder::new(client.clone(), Reporter::from(MANAGER));
    let context = Arc::new(Context { client: client.clone(), recorder, hosts, published });
    Controller::new(websites, watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(concurrency))
        .graceful_shutdown_on(stop)
        .run(reconcile, error_policy, context)
        .for_each(async |result| {
            if let Err(error) = result {
                tracing::warn!(%error, "Reconcile failed");
            }
        })
        .await;
    Ok(())
}

fn error_policy(_: Arc<Website>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

async fn reconcile(website: Arc<Website>, context: Arc<Context>) -> Result<Action, Error> {
    let websites = Api::namespaced(context.client.clone(), &website.namespace().unwrap_or_default());
    let result = finalizer(&websites, FINALIZER, website, async |event| match event {
        FinalizerEvent::Apply(website) => keep(&website, &websites, &context).await,
        FinalizerEvent::Cleanup(website) => {
            context.hosts.free(&website.spec.host, &website.full_name()).await?;
            Ok(Action::await_change())
        }
    });
    result.await.map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn keep(website: &Website, websites: &Api<Website>, context: &Context) -> Result<Action, Error> {
    let host = context.hosts.publish(&website.spec.host, &website.full_name()).await?;
    let apply = PatchParams::apply(MANAGER).force();
    let namespace = website.namespace().unwrap_or_default();
    let deployments = Api::<Deployment>::namespaced(context.client.clone(), &namespace);
    let deployment = deployments.patch(&website.name_any(), &apply, &Patch::Apply(website.deployment())).await?;
    let services = Api::<Service>::namespaced(context.client.clone(), &namespace);
    services.patch(&website.name_any(), &apply, &Patch::Apply(website.service())).await?;

    let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or_default();
    #[expect(clippy::disallowed_methods, reason = "plain kube-rs has no clock to inject")]
    let now = Timestamp::now();
    let status = website.next_status(&host, ready, now);
    if website.status.as_ref() != Some(&status) {
        announce(website, &status, &host, context).await?;
        let patch: Value = json!({ "status": status });
        websites.patch_status(&website.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    Ok(Action::await_change())
}

/// Records an event when the reason of the condition changes.
async fn announce(website: &Website, status: &WebsiteStatus, host: &HostState, context: &Context) -> Result<(), Error> {
    let condition = &status.conditions[0];
    let before = website.status.iter().flat_map(|status| &status.conditions).next();
    if before.is_some_and(|before| before.reason == condition.reason) {
        return Ok(());
    }
    if condition.status == "True" {
        context.published.inc();
    }
    let event = Event {
        type_: if matches!(host, HostState::Taken(_)) { EventType::Warning } else { EventType::Normal },
        reason: condition.reason.clone(),
        note: Some(condition.message.clone()),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    context.recorder.publish(&event, &website.object_ref(&())).await?;
    Ok(())
}
