//! Two API servers behind a load balancer, of which one cannot serve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kcm_api::Resource;
use kcm_client::{ApiClient, ClientBuilder, ClientProvider, Limits, ListQuery, NoMetrics, UserAgent, connect};
use kcm_informers::Connection;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::connections::server::Authority;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

/// Two API servers. Each connection leads to the server that the load balancer chooses when it is made.
struct Servers {
    config: kube::Config,
    both: [Arc<Server>; 2],
    chosen: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Server {
    is_sick: AtomicBool,
    connections: AtomicUsize,
}

impl Servers {
    async fn start() -> Self {
        let authority = Authority::new();
        let acceptor = authority.acceptor("h2");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = kube::Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.root_cert = Some(vec![authority.der()]);
        let both: [Arc<Server>; 2] = Default::default();
        let chosen = Arc::new(AtomicUsize::new(0));
        let (choices, balanced) = (both.clone(), Arc::clone(&chosen));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = &choices[balanced.load(Ordering::Relaxed)];
                server.connections.fetch_add(1, Ordering::Relaxed);
                serving.spawn(serve(acceptor.clone(), stream, Arc::clone(server)));
            }
        });
        Self { config, both, chosen, _tasks: tasks }
    }

    /// The load balancer leads new connections to this server.
    fn choose(&self, server: usize) {
        self.chosen.store(server, Ordering::Relaxed);
    }

    fn set_sick(&self, server: usize, is_sick: bool) {
        self.both[server].is_sick.store(is_sick, Ordering::Relaxed);
    }

    fn connections(&self) -> [usize; 2] {
        self.both.each_ref().map(|server| server.connections.load(Ordering::Relaxed))
    }
}

/// Answers with an empty list and keeps watches open. A server that is sick has no storage.
async fn serve(acceptor: TlsAcceptor, stream: TcpStream, server: Arc<Server>) {
    const NO_STORAGE: &str =
        r#"{"kind":"Status","status":"Failure","code":500,"message":"etcdserver: request timed out"}"#;
    let stream = acceptor.accept(stream).await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut open = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let is_readiness = request.uri().path() == "/readyz";
        let (code, text) = match (server.is_sick.load(Ordering::Relaxed), is_readiness) {
            (true, true) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "[+]ping ok\n[-]etcd-readiness failed: reason withheld\n")
            }
            (true, false) => (StatusCode::INTERNAL_SERVER_ERROR, NO_STORAGE),
            (false, true) => (StatusCode::OK, "ok"),
            (false, false) => (StatusCode::OK, r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#),
        };
        let response = Response::builder().status(code).body(()).unwrap();
        let mut body = respond.send_response(response, false).unwrap();
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if is_watch && code.is_success() {
            open.push(body);
        } else {
            body.send_data(text.into(), true).unwrap();
        }
    }
}

/// Clients whose connections are monitored.
struct Monitored {
    connection: Connection,
    clients: ClientBuilder,
    _monitors: JoinSet<()>,
}

impl Monitored {
    /// Clients of `provider`, with separate connections if it has such.
    fn new(provider: impl ClientProvider) -> Self {
        let (connection, monitor) = Connection::new(7);
        let separate = provider.separate_probe().map(|_| connection.dependent(8));
        let (separate, other) = separate.unzip();
        let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "");
        let metrics = Arc::new(NoMetrics);
        let clients =
            ClientBuilder::over_connections(connection.clone(), separate, provider, agent, Limits::UNLIMITED, metrics);
        let mut monitors = JoinSet::new();
        let probes = [Some(clients.kube_client_for(ClientBuilder::PROBE)), clients.separate_probe()];
        for (monitor, probe) in std::iter::once(monitor).chain(other).zip(probes.into_iter().flatten()) {
            monitors.spawn(async move { match monitor.run(&probe).await {} });
        }
        Self { connection, clients, _monitors: monitors }
    }

    fn api(&self, identity: &str) -> ApiClient {
        self.clients.client_for(identity)
    }
}

async fn list(api: &ApiClient) -> bool {
    api.list(&PODS, None, &ListQuery::default()).await.is_ok()
}

async fn watch(client: &kube::Client) -> Response<Body> {
    client.send(Request::get("/api/v1/pods?watch=true").body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn requests_leave_a_server_that_cannot_serve_for_one_that_can() {
    let servers = Servers::start().await;
    let manager = Monitored::new(connect(&servers.config).unwrap());
    let api = manager.api("a");
    assert!(list(&api).await);
    servers.set_sick(0, true);
    servers.choose(1);
    assert!(!list(&api).await);
    assert!(manager.connection.verdict().await);
    assert!(list(&api).await);
    assert_eq!(manager.connection.outages(), 0, "the other server serves");
    assert_eq!(servers.connections(), [1, 1]);
}

#[tokio::test]
async fn an_outage_ends_when_another_server_serves_though_the_connections_lead_to_one_that_does_not() {
    let servers = Servers::start().await;
    let manager = Monitored::new(connect(&servers.config).unwrap());
    let api = manager.api("a");
    assert!(list(&api).await);
    servers.set_sick(0, true);
    servers.set_sick(1, true);
    servers.choose(1);
    assert!(!list(&api).await);
    manager.connection.lost().await;
    servers.set_sick(1, false);
    // A probe over a fresh connection is due by then, and no ping of a connection yet.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(7)).await;
    tokio::time::resume();
    let reachable = tokio::time::timeout(Duration::from_mins(1), manager.connection.reachable()).await;
    reachable.expect("a fresh connection must be tried every few seconds");
    assert!(list(&api).await);
    assert_eq!(manager.connection.outages(), 1);
}

#[tokio::test]
async fn watches_leave_a_server_that_cannot_serve_though_requests_go_to_one_that_can() {
    let servers = Servers::start().await;
    let client = connect(&servers.config).unwrap();
    let manager = Monitored::new(client.clone());
    let api = manager.api("a");
    assert!(list(&api).await);
    servers.choose(1);
    let mut open = watch(&client).await.into_body();
    assert_eq!(servers.connections(), [1, 1]);
    servers.set_sick(1, true);
    servers.choose(0);
    assert_eq!(watch(&client).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    manager.connection.suspect(&"a watch failed");
    assert!(manager.connection.verdict().await);
    assert_eq!(watch(&client).await.status(), StatusCode::OK);
    assert!(open.frame().await.is_none(), "a watch of the sick server ends, and is resumed elsewhere");
    assert!(list(&api).await);
    assert_eq!((manager.connection.outages(), servers.connections()[1]), (0, 1));
}

/// The service account `account` has connections of its own.
struct Accounts {
    manager: kube::Client,
    account: kube::Client,
}

impl ClientProvider for Accounts {
    fn client_for(&self, identity: &str) -> kube::Client {
        if self.is_separate(identity) { self.account.clone() } else { self.manager.clone() }
    }

    fn is_separate(&self, identity: &str) -> bool {
        identity == "account"
    }

    fn separate_probe(&self) -> Option<kube::Client> {
        Some(self.account.clone())
    }
}

#[tokio::test]
async fn service_accounts_leave_a_server_that_cannot_serve_though_the_manager_is_on_one_that_can() {
    let servers = Servers::start().await;
    let [manager, account] = [0; 2].map(|_| connect(&servers.config).unwrap());
    let monitored = Monitored::new(Accounts { manager, account });
    let [manager, account] = ["manager", "account"].map(|identity| monitored.api(identity));
    assert!(list(&manager).await);
    servers.choose(1);
    assert!(list(&account).await);
    assert_eq!(servers.connections(), [1, 1]);
    servers.set_sick(1, true);
    servers.choose(0);
    assert!(!list(&account).await);
    assert!(monitored.connection.is_serving(), "the connection of the manager is not suspected");
    assert!(account.connection().verdict().await);
    assert!(list(&account).await && list(&manager).await);
    assert_eq!((account.connection().outages(), servers.connections()), (0, [2, 1]));
}
