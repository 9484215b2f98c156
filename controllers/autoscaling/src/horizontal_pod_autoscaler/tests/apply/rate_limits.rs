//! The rate limits of the clients: none uses the tokens of another.

use kcm_framework::client::Limits;
use kcm_testing::sandbox::{Fault, Verb};

use super::*;

/// More requests than the autoscalers under test send through one client.
const BURST: u16 = 20;

/// The clients of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Scale,
    Resource,
    Custom,
    External,
    /// Writes scales, statuses and events.
    Status,
}

/// The clients that read. Each has an autoscaler under test, which needs it.
const READING: [Client; 4] = [Client::Scale, Client::Resource, Client::Custom, Client::External];

impl Client {
    /// The autoscaler under test.
    const fn tested(self) -> &'static str {
        match self {
            Self::Scale => "late",
            Self::Resource => "usage",
            Self::Custom => "hits",
            Self::External => "jobs",
            Self::Status => panic!("it reads nothing"),
        }
    }

    /// How the request begins that the autoscaler under test sends through this client, and what its query contains.
    const fn request(self) -> (&'static str, &'static str) {
        match self {
            Self::Scale => ("/apis/apps/v1/namespaces/shop/deployments/late/scale", ""),
            Self::Resource => ("/apis/metrics.k8s.io/", "usage"),
            Self::Custom => ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/services/main/hits", ""),
            Self::External => ("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/jobs", ""),
            Self::Status => panic!("it reads nothing"),
        }
    }
}

/// A value of an object that is to be 1.
fn object(metric: &str) -> Value {
    let main = json!({ "apiVersion": "v1", "kind": "Service", "name": "main" });
    let target = json!({ "type": "Value", "value": "1" });
    json!({ "type": "Object", "object": { "describedObject": main, "metric": { "name": metric }, "target": target } })
}

/// Serves the metrics of the autoscalers under test; what others ask for hangs.
fn serve_metrics(sandbox: &Sandbox) {
    sandbox.serve_path("/apis/metrics.k8s.io/", |_, query| {
        let usage = json!([{ "name": "main", "usage": { "cpu": "200m" } }]);
        let pod = |name: &str| json!({ "metadata": { "name": name }, "containers": usage });
        let tested = query("labelSelector")? == "app=usage";
        tested.then(|| Ok(json!({ "items": [pod("usage-0"), pod("usage-1")] })))
    });
    sandbox.serve_path("/apis/custom.metrics.k8s.io", |path, _| {
        let version = json!({ "version": "v1beta2" });
        match path.rsplit('/').next()? {
            "custom.metrics.k8s.io" => Some(Ok(json!({ "preferredVersion": version, "versions": [version] }))),
            "hits" => Some(Ok(json!({ "items": [{ "describedObject": { "name": "main" }, "value": "2" }] }))),
            _ => None,
        }
    });
    sandbox.serve_path("/apis/external.metrics.k8s.io/", |path, _| {
        path.ends_with("/jobs").then(|| Ok(json!({ "items": [{ "value": "4" }] })))
    });
}

/// Delays the scale of each target whose name begins so.
fn delay_scales(sandbox: &Sandbox, prefix: &'static str, by: Duration) {
    let fault = Fault::on(Verb::Get).subresource("scale");
    let named = move |name: &String| name.starts_with(prefix);
    sandbox.faults().inject(fault.when(move |target| target.name.as_ref().is_some_and(named)).delay(by));
}

/// Makes autoscalers that exhaust a client, and of the others only what they have sent before there was a limit.
fn exhaust(sandbox: &Sandbox, client: Client) {
    for at in 0..BURST {
        let name = format!("greedy-{at}");
        let metric = match client {
            // The scale never comes.
            Client::Scale | Client::Resource => cpu(100),
            Client::Custom => object("hangs"),
            Client::External | Client::Status => external("hangs", "1"),
        };
        // A target without replicas takes no metrics: the status that says so is the one request that is left.
        let replicas = i64::from(client != Client::Status);
        deployment(sandbox, &name, replicas, "1m");
        autoscaler(sandbox, &name, (1, 3), &[metric]);
    }
}

async fn check(exhausted: Client) {
    let argument = format!("--concurrent-horizontal-pod-autoscaler-syncs={}", 3 * BURST);
    let environment = TestEnvironment::new([DESCRIPTOR]).namespace("shop").arguments(&[&argument]);
    let cluster = start(environment.prepare(serve_metrics)).await;
    let sandbox = cluster.sandbox();
    for (name, metric) in [("usage", cpu(100)), ("hits", object("hits")), ("jobs", external("jobs", "1"))] {
        deployment(sandbox, name, 2, "200m");
        autoscaler(sandbox, name, (1, 10), &[metric]);
        delay_scales(sandbox, name, Duration::from_secs(5));
    }
    if exhausted != Client::Scale {
        delay_scales(sandbox, "greedy", Duration::from_secs(2));
        exhaust(sandbox, exhausted);
    }
    // By then the scales of these are requested. They come when the client is exhausted.
    cluster.advance(Duration::from_secs(1)).await;
    cluster.set_limits(Limits { qps: 0.0001, burst: BURST.into() });
    if exhausted == Client::Scale {
        // Their scales are read when there is a limit.
        delay_scales(sandbox, "greedy", Duration::from_mins(1));
        exhaust(sandbox, exhausted);
    }
    cluster.advance(Duration::from_secs(3)).await;
    deployment(sandbox, "late", 2, "1m");
    autoscaler(sandbox, "late", (4, 10), &[cpu(100)]);
    cluster.advance(Duration::from_secs(3)).await;

    let requests = cluster.requests_of("horizontal-pod-autoscaler");
    let is_sent = |client: &Client| {
        let (path, query) = client.request();
        requests.iter().any(|request| request.path.starts_with(path) && request.query.contains(query))
    };
    let sent: Vec<Client> = READING.into_iter().filter(is_sent).collect();
    let others: Vec<Client> = READING.into_iter().filter(|client| *client != exhausted).collect();
    assert_eq!(sent, others, "{exhausted:?} is exhausted, and all others send");
    let is_scaled = |client: &Client| replicas(sandbox, client.tested()) == 4;
    let scaled: Vec<Client> = READING.into_iter().filter(is_scaled).collect();
    let expected = if exhausted == Client::Status { Vec::new() } else { others };
    assert_eq!(scaled, expected, "{exhausted:?} is exhausted, and those that do not need it are scaled");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_exhausted_holds_up_no_other() {
    for exhausted in [Client::Scale, Client::Resource, Client::Custom, Client::External, Client::Status] {
        check(exhausted).await;
    }
}
