//! The connections under the client, against an HTTP/2 server on this machine.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::Either;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kcm_api::Resource;
use kcm_client::{
    ApiClient, Cause, ClientBuilder, DeleteOptions, Limits, ListQuery, Payload, StackError, UserAgent, connect,
};
use kube::client::Body;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");

/// Answers requests with an empty list, keeps watches open, and hangs up on a POST; of what says so in its query, it
/// resets the stream, never answers, or answers and then hangs with all of its connection.
struct Server {
    config: kube::Config,
    connections: Arc<AtomicUsize>,
    /// Notified of each request that is never answered.
    hangs: Arc<Notify>,
    tasks: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ca).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = kube::Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.root_cert = Some(vec![ca.der().to_vec()]);
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let hangs = Arc::new(Notify::new());
        let hanging = Arc::clone(&hangs);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.fetch_add(1, Ordering::Relaxed);
                serving.spawn(serve(acceptor.clone(), stream, Arc::clone(&hanging)));
            }
        });
        Self { config, connections, hangs, tasks }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

fn clients(client: kube::Client) -> ClientBuilder {
    ClientBuilder::new(client, UserAgent::new("kube-controller-manager", "v1.37.2", ""), Limits::UNLIMITED)
}

fn api(client: kube::Client) -> ApiClient {
    clients(client).client_for("stack")
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, hangs: Arc<Notify>) {
    let stream = acceptor.accept(stream).await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (mut open, mut hanging) = (Vec::new(), Vec::new());
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        if request.method() == Method::POST {
            return;
        }
        let asks_for = |what| request.uri().query().is_some_and(|query| query.contains(what));
        if asks_for("reset") {
            respond.send_reset(h2::Reason::INTERNAL_ERROR);
            continue;
        }
        if asks_for("hang") {
            hanging.push(respond);
            hangs.notify_one();
            continue;
        }
        let is_watch = asks_for("watch=true");
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        if asks_for("freeze") {
            // Sends the head, and nothing after it.
            assert!(futures::poll!(Box::pin(connection.accept())).is_pending());
            return std::future::pending().await;
        }
        if is_watch {
            open.push(body);
        } else {
            body.send_data(r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#.into(), true).unwrap();
        }
    }
}

async fn watch(client: &kube::Client) -> Response<Body> {
    client.send(Request::get("/api/v1/pods?watch=true").body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn requests_share_a_connection_and_so_do_fifty_watches() {
    let server = Server::start().await;
    let client = connect(&server.config).unwrap();
    let api = api(client.clone());
    let lists: Vec<_> =
        futures::future::join_all((0..20).map(|_| async { api.list(&PODS, None, &ListQuery::default()).await })).await;
    assert!(lists.iter().all(Result::is_ok));
    assert_eq!(server.connections(), 1, "though all began at once");

    let mut watches = futures::future::join_all((0..50).map(|_| watch(&client))).await;
    assert_eq!(server.connections(), 2);
    watches.push(watch(&client).await);
    assert_eq!(server.connections(), 3, "kube-apiserver may serve no more than 100 streams on one");
    watches.truncate(10);
    watches.extend(futures::future::join_all((0..40).map(|_| watch(&client))).await);
    assert_eq!(server.connections(), 3, "ended watches make room");
}

#[tokio::test]
async fn the_writes_of_a_lease_have_a_connection_of_their_own_that_is_reset_with_the_fence() {
    let server = Server::start().await;
    let clients = clients(connect(&server.config).unwrap());
    let api = clients.client_for("stack");
    let hanging = ListQuery { label_selector: Some("hang".to_owned()), ..ListQuery::default() };
    let (pods, options) = (PODS, DeleteOptions::default());
    let list = async || api.list(&PODS, None, &ListQuery::default()).await.map(drop);
    let delete = async || {
        let deleting = api.delete_collection(&pods, Some("a"), &hanging, &options);
        tokio::select! {
            deleted = deleting => deleted.map(|()| "answered"),
            () = server.hangs.notified() => Ok("hangs"),
        }
    };
    list().await.unwrap();
    assert_eq!(delete().await.unwrap(), "hangs");
    assert_eq!(server.connections(), 1, "without a lease, writes share the connection of requests");

    clients.fence().open_until(Instant::now() + Duration::from_hours(1));
    let deleting = api.delete_collection(&pods, Some("a"), &hanging, &options);
    let closing = async {
        server.hangs.notified().await;
        assert_eq!(server.connections(), 2);
        clients.fence().close();
    };
    // Far below the time for which the response is waited for otherwise.
    let closed = tokio::time::timeout(Duration::from_secs(8), futures::future::join(deleting, closing)).await;
    let error = closed.expect("the connection must be reset with the fence").0.unwrap_err();
    assert!(error.response_lost(), "{error:?}");
    list().await.unwrap();
    assert_eq!(server.connections(), 2, "reads of a standby go on over their connection");
}

#[tokio::test]
async fn where_the_connection_broke_those_who_waited_for_it_share_the_next() {
    let server = Server::start().await;
    let api = api(connect(&server.config).unwrap());
    api.list(&PODS, None, &ListQuery::default()).await.unwrap();
    api.create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    let lists: Vec<_> =
        futures::future::join_all((0..20).map(|_| async { api.list(&PODS, None, &ListQuery::default()).await })).await;
    assert!(lists.iter().all(Result::is_ok));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_stream_that_is_reset_makes_nobody_wait_for_the_request_after_it() {
    let server = Server::start().await;
    let client = connect(&server.config).unwrap();
    let get = |query| client.send(Request::get(format!("/api/v1/pods?{query}")).body(Body::empty()).unwrap());
    get("first").await.unwrap();
    get("reset").await.unwrap_err();
    let hanging = get("hang");
    tokio::pin!(hanging);
    assert!(futures::poll!(&mut hanging).is_pending());
    let next = get("next");
    // Far below the ten seconds for which a request would wait for the connecting request.
    let answered = tokio::time::timeout(Duration::from_secs(8), futures::future::select(hanging, Box::pin(next))).await;
    assert!(matches!(answered, Ok(Either::Right((Ok(_), _)))));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn after_a_broken_connection_a_slow_response_makes_nobody_wait() {
    let server = Server::start().await;
    let client = connect(&server.config).unwrap();
    let get = |query| client.send(Request::get(format!("/api/v1/pods?{query}")).body(Body::empty()).unwrap());
    get("first").await.unwrap();
    api(client.clone()).create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    let slow = get("hang");
    tokio::pin!(slow);
    assert!(futures::poll!(&mut slow).is_pending());
    // Far below the ten seconds for which a request would wait for the connecting request.
    let next = Box::pin(get("next"));
    let answered = tokio::time::timeout(Duration::from_secs(8), futures::future::select(slow, next)).await;
    assert!(matches!(answered, Ok(Either::Right((Ok(_), _)))));
    assert_eq!(server.connections(), 2, "the next request waits for the connection, and opens none of its own");
}

#[tokio::test]
async fn a_server_that_hangs_without_closing_its_connection_is_given_up_after_twenty_seconds() {
    let server = Server::start().await;
    let client = connect(&server.config).unwrap();
    let request = Request::get("/api/v1/pods?watch=true&freeze").body(Body::empty()).unwrap();
    let mut stream = client.send(request).await.unwrap().into_body();
    // Nothing comes any more, so that only timers move.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let frame = stream.frame().await.expect("the watch must not end in good order");
    frame.expect_err("nothing was sent");
    let took = begun.elapsed();
    assert!((19..=21).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_answer_open_and_one_that_is_not_made_does_not() {
    let mut server = Server::start().await;
    let client = connect(&server.config).unwrap();
    let error = api(client).create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Transport(_)) && error.response_lost(), "{error:?}");

    server.tasks.shutdown().await;
    let fresh = api(connect(&server.config).unwrap());
    let error = fresh.create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::NotSent(_)) && !error.response_lost(), "{error:?}");
    assert!(error.message().contains("Connection refused"), "{}", error.message());
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_told_and_nothing_is_sent() {
    let server = Server::start().await;
    let mut config = server.config.clone();
    config.auth_info.token_file = Some("/nowhere/token".to_owned());
    assert!(matches!(connect(&config), Err(StackError::Credentials(_))));
    config = server.config.clone();
    config.proxy_url = Some("socks4://proxy:1080".parse().unwrap());
    assert!(matches!(connect(&config), Err(StackError::Proxy(..))));
    config = server.config.clone();
    config.tls_server_name = Some("not a name".to_owned());
    assert!(matches!(connect(&config), Err(StackError::ServerName(_))));
    assert_eq!(server.connections(), 0);
}
