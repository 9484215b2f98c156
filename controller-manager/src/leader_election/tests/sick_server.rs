//! A lease behind a load balancer with two API servers, of which one cannot serve any more.

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kcm_framework::client::connect;
use kcm_sandbox_apiserver::{ConnectionLost, ResponseBody};
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

use super::*;
use crate::leader_election::thread::{Held, LeaseConnection, Options, StopLease, keep_through};

/// Renewals follow each other closely, and the lease holds for longer than any machine takes for this test.
const PATIENT: Timing = Timing {
    lease_duration: Duration::from_mins(5),
    renew_deadline: Duration::from_mins(4),
    retry_period: Duration::from_millis(50),
};

/// Two API servers with one storage. Each connection leads to the server that the load balancer chooses when it is made.
struct Servers {
    config: kube::Config,
    load_balancer: LoadBalancer,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct LoadBalancer {
    sandbox: Sandbox,
    chosen: Arc<AtomicUsize>,
    /// The server that has lost its storage; none at first.
    sick: watch::Sender<Option<usize>>,
    /// Number of renewals that each server has stored.
    renewals: watch::Sender<[usize; 2]>,
}

impl Servers {
    async fn start(sandbox: &Sandbox) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port must be free");
        let address = listener.local_addr().expect("it is bound");
        let config = kube::Config::new(format!("http://{address}").parse().expect("it is an address"));
        let load_balancer = LoadBalancer {
            sandbox: sandbox.clone(),
            chosen: Arc::default(),
            sick: watch::Sender::default(),
            renewals: watch::Sender::default(),
        };
        let mut tasks = JoinSet::new();
        let balanced = load_balancer.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let server = balanced.chosen.load(Ordering::Relaxed);
                connections.spawn(balanced.clone().serve(stream, server));
            }
        });
        Self { config, load_balancer, _tasks: tasks }
    }

    /// Waits until that server has stored so many renewals.
    async fn stores(&self, server: usize, renewals: usize) {
        let mut stored = self.load_balancer.renewals.subscribe();
        let enough = stored.wait_for(|stored| stored[server] >= renewals);
        let enough = timeout(Duration::from_mins(2), enough).await;
        drop(enough.expect("it must renew there").expect("the server must run"));
    }
}

impl LoadBalancer {
    async fn serve(self, stream: TcpStream, server: usize) {
        let service = service_fn(|request| self.clone().respond(request, server));
        // A client that has disconnected is no failure.
        drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
    }

    async fn respond(
        self,
        request: Request<Incoming>,
        server: usize,
    ) -> Result<Response<ResponseBody>, ConnectionLost> {
        if *self.sick.borrow() == Some(server) {
            let text = if request.uri().path() == "/readyz" {
                "[+]ping ok\n[-]etcd-readiness failed: reason withheld\n"
            } else {
                r#"{"kind":"Status","status":"Failure","code":500,"message":"etcdserver: request timed out"}"#
            };
            let body = ResponseBody::new(text.to_owned().map_err(|never| match never {}));
            return Ok(Response::builder().status(500).body(body).expect("the code is one"));
        }
        let is_renewal = request.method() == http::Method::PUT;
        let response = self.sandbox.service().oneshot(request).await?;
        if is_renewal && response.status().is_success() {
            self.renewals.send_modify(|renewals| renewals[server] += 1);
        }
        Ok(response)
    }
}

#[tokio::test]
async fn a_lease_leaves_a_server_that_cannot_serve_and_its_holder_leads_on() {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let servers = Servers::start(&sandbox).await;
    let Surroundings { watchdog, clock: elapsed, connection, .. } = Surroundings::default();
    let metrics = Metrics::new();
    let sender = watch::Sender::<Leadership>::default();
    let mut leadership = sender.subscribe();
    let held = Held { fence: closed_for_lease(Fence::default(), Arc::new(elapsed.clone())), connection };
    let options = Options {
        lease: lease(),
        identity: "a".to_owned(),
        timing: PATIENT,
        limits: Limits::UNLIMITED,
        releases: true,
        metrics: metrics.register(LeaseMetrics::register),
        plugins: metrics.exec_plugins().clone(),
        watchdog,
        elapsed: Arc::new(elapsed),
        leadership: sender,
        ready: watch::Sender::new(true),
        connection: LeaseConnection::new(&lease(), "a"),
    };
    let client = connect(&servers.config).expect("the configuration is valid");
    let clock = Arc::new(SimulatedClock::starting_at(sandbox.now()));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { keep_through(client, clock, options, held, &StopLease::default()).await });
    servers.stores(0, 3).await;
    let term = leadership.borrow_and_update().term;
    assert!(term.is_some());

    servers.load_balancer.chosen.store(1, Ordering::Relaxed);
    servers.load_balancer.sick.send_replace(Some(0));
    servers.stores(1, 3).await;
    assert_eq!(leadership.borrow().term, term, "no term has ended");
    assert_eq!(record(&sandbox)["leaseTransitions"], 0, "nobody else has led");
}
