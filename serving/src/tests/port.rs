//! Endpoints for all users, and the start and end of the port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Port;
use crate::health::Check;

const OPEN: &str = "--authorization-always-allow-paths=/*";

#[tokio::test]
async fn health_is_open_to_all_and_nothing_else_is() {
    let port = Port::start(&[]).await;
    for path in ["/healthz", "/livez", "/readyz", "/healthz?verbose"] {
        assert_eq!(port.client.get(path).await.code, 200, "{path}");
    }
    for path in ["/metrics", "/configz", "/version", "/healthz/ping", "/", "/none", "/healthz/", "//healthz"] {
        let answer = port.client.get(path).await;
        assert_eq!(answer.code, 403, "{path}: {answer:?}");
        assert!(answer.body.contains("User \\\"system:anonymous\\\" cannot get path"), "{answer:?}");
    }
    // Without an API server it is unknown whose token it is.
    assert_eq!(port.client.send("GET", "/metrics", &[("authorization", "Bearer a")]).await.code, 403);
    assert_eq!(port.client.send("GET", "/healthz", &[("authorization", "Bearer a")]).await.code, 200);
}

#[tokio::test]
async fn open_paths_are_answered() {
    let port = Port::start(&[OPEN]).await;
    let metrics = port.client.get("/metrics").await;
    assert!(metrics.code == 200 && metrics.body.contains("# TYPE"), "{metrics:?}");
    let configz = port.client.get("/configz").await;
    let configz: serde_json::Value = serde_json::from_str(&configz.body).expect("it is JSON");
    assert_eq!(configz["kubecontrollermanager.config.k8s.io"]["kind"], "KubeControllerManagerConfiguration");
    let version = port.client.get("/version").await;
    assert!(version.body.contains("\"gitVersion\":\"v1.37.2\""), "{version:?}");
    let none = port.client.get("/none").await;
    assert_eq!((none.code, none.body.as_str()), (404, "404 page not found\n"));
    assert!(none.head.contains("cache-control: no-cache, private"), "{none:?}");
    assert_eq!(port.client.get("/m%65trics").await.code, 404);
    assert_eq!(port.client.get("/%zz").await.code, 400);
    let head = port.client.send("HEAD", "/healthz", &[]).await;
    assert_eq!((head.code, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn a_check_that_fails_is_said_to_all_and_why_to_those_who_may_know() {
    let healthy = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&healthy);
    let check = Check::new("leaderElection", move || {
        if state.load(Ordering::Relaxed) { Ok(()) } else { Err("the lease was not renewed".to_owned()) }
    });
    let port = Port::start_with(&[OPEN], vec![check]).await;
    assert_eq!(port.client.get("/healthz").await.body, "ok");
    assert_eq!(port.client.get("/livez?verbose").await.body, "[+]leaderElection ok\nlivez check passed\n");
    assert_eq!(
        port.client.get("/readyz?verbose").await.body,
        "[+]leaderElection ok\n[+]api-server ok\n[+]caches ok\n[+]serving-certificates ok\nreadyz check passed\n"
    );
    healthy.store(false, Ordering::Relaxed);
    let failed = port.client.get("/healthz").await;
    assert_eq!(
        (failed.code, failed.body.as_str()),
        (500, "[-]leaderElection failed: reason withheld\nhealthz check failed\n")
    );
    assert_eq!(port.client.get("/healthz?exclude=leaderElection").await.code, 200);
    let why = port.client.get("/healthz/leaderElection").await;
    assert_eq!((why.code, why.body.as_str()), (500, "internal server error: the lease was not renewed\n"));
    assert_eq!(port.client.get("/readyz/caches").await.body, "ok");
    assert_eq!(port.client.get("/healthz/none").await.code, 404);
}

#[tokio::test]
async fn plain_http_is_told_that_this_is_https() {
    let port = Port::start(&[]).await;
    let mut stream = port.client.tcp().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    assert!(answer.starts_with("HTTP/1.0 400 Bad Request\r\n") && answer.contains("HTTPS server"), "{answer}");
}

#[tokio::test]
async fn the_port_is_closed_at_the_end() {
    let Port { serving, client } = Port::start(&[]).await;
    let idle = client.tls(&["http/1.1"]).await.expect("TLS is served");
    serving.stop().await;
    assert!(TcpStream::connect(client.address).await.is_err());
    drop(idle);
}

#[tokio::test]
async fn http_2_is_served_unless_it_is_disabled() {
    let port = Port::start(&[]).await;
    let stream = port.client.tls(&["h2", "http/1.1"]).await.expect("TLS is served");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let port = Port::start(&["--disable-http2-serving"]).await;
    let stream = port.client.tls(&["h2", "http/1.1"]).await.expect("TLS is served");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn flags_and_status_are_shown_in_the_form_that_is_asked_for() {
    let port = Port::start(&[OPEN, "--kube-api-qps=50"]).await;
    let flagz = port.client.get("/flagz").await;
    assert!(flagz.code == 200 && flagz.body.contains("\nkube-api-qps: 50\n"), "{flagz:?}");
    let accept = ("accept", "application/json;v=v1beta1;g=config.k8s.io;as=Statusz");
    let statusz = port.client.send("GET", "/statusz", &[accept]).await;
    let statusz: serde_json::Value = serde_json::from_str(&statusz.body).expect("it is JSON");
    assert_eq!((&statusz["apiVersion"], &statusz["kind"]), (&"config.k8s.io/v1beta1".into(), &"Statusz".into()));
    let accept = ("accept", "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz");
    let old = port.client.send("GET", "/flagz", &[accept]).await;
    assert!(old.head.contains("warning: 299") && old.body.contains("\nkind: \"Flagz\"\n"), "{old:?}");
    assert_eq!(port.client.send("GET", "/flagz", &[("accept", "application/json")]).await.code, 406);
    let port = Port::start(&[OPEN, "--feature-gates=ComponentFlagz=false,ComponentStatusz=false"]).await;
    assert_eq!((port.client.get("/flagz").await.code, port.client.get("/statusz").await.code), (404, 404));
}

#[tokio::test]
async fn the_verbosity_is_set_by_a_put_under_profiling() {
    let port = Port::start(&[OPEN]).await;
    let put = |body: &'static str| port.client.send_body("PUT", "/debug/flags/v", &[], body);
    let set = put("4").await;
    assert_eq!((set.code, set.body.as_str()), (200, "successfully set klog.logging.verbosity to 4\n"));
    assert_eq!(put("four").await.code, 400);
    assert_eq!(put("-1").await.code, 400);
    assert_eq!(port.client.get("/debug/flags/v").await.code, 406);
    let port = Port::start(&[OPEN, "--profiling=false"]).await;
    assert_eq!(port.client.send_body("PUT", "/debug/flags/v", &[], "4").await.code, 404);
}
