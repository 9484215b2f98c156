use http::header;
use http_body_util::Full;
use kcm_sandbox_apiserver::Sandbox;
use kcm_sandbox_listener::{ListenError, ListenOptions, Listener};

use crate::listener::support::{served, served_with};

fn without_token(method: &str, path: &str) -> http::request::Builder {
    http::Request::builder().method(method).uri(format!("https://localhost{path}")).header(header::HOST, "localhost")
}

#[tokio::test(start_paused = true)]
async fn everything_but_health_and_version_takes_the_token() {
    let served = served().await;
    let rows = [
        (None, "GET", "/healthz", 200),
        (None, "GET", "/livez", 200),
        (None, "GET", "/readyz", 200),
        (None, "GET", "/version", 200),
        (None, "GET", "/api", 401),
        (None, "GET", "/healthz/log", 401),
        (None, "POST", "/healthz", 401),
        (None, "GET", "/nonsense", 401),
        (None, "GET", "/api/v1/namespaces", 401),
        (None, "POST", "/api/v1/namespaces", 401),
        (Some("Bearer wrong"), "GET", "/api/v1/namespaces", 401),
        (Some("Bearer wrong"), "GET", "/healthz", 401),
        (Some("Basic d2hvOm1l"), "GET", "/api/v1/namespaces", 401),
    ];
    for (authorization, method, path, expected) in rows {
        for mut http in served.both().await {
            let mut request = without_token(method, path);
            if let Some(value) = authorization {
                request = request.header(header::AUTHORIZATION, value);
            }
            let answer = http.ask(request.body(Full::default()).expect("it is a request")).await;
            assert_eq!(answer.code, expected, "{authorization:?} {method} {path}");
            if expected == 401 {
                assert_eq!(answer.reason(), "Unauthorized");
            }
        }
    }
    assert_eq!(served.sandbox.requests().len(), 8, "nobody else has come as far as the API");
}

#[tokio::test(start_paused = true)]
async fn the_token_is_in_no_note_and_no_debug_output() {
    let options = ListenOptions { token: Some("very-secret".to_owned()), ..ListenOptions::default() };
    assert!(!format!("{options:?}").contains("very-secret"));
    let listener = Listener::bind(&Sandbox::default(), options.clone()).await.expect("a port is free");
    assert!(!format!("{listener:?}").contains("very-secret"));
    assert!(listener.kubeconfig().contains("very-secret"));

    let served = served_with(options).await;
    served.assert_serves().await;
    let notes = served.sandbox.requests();
    assert!(!notes.is_empty() && !format!("{notes:?}").contains("very-secret"), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn each_start_has_its_own_token_and_authority() {
    let sandbox = Sandbox::default();
    let bind = || Listener::bind(&sandbox, ListenOptions::default());
    let (one, other) = (bind().await.expect("a port is free"), bind().await.expect("a port is free"));
    let line = |text: String, key: &str| text.lines().find(|line| line.contains(key)).map(str::to_owned);
    for key in ["token:", "certificate-authority-data:"] {
        assert_ne!(
            line(one.kubeconfig(), key).expect("it is there"),
            line(other.kubeconfig(), key).expect("it is there")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn says_what_cannot_be_bound() {
    let bind = async |options: ListenOptions| Listener::bind(&Sandbox::default(), options).await;
    let listener = bind(ListenOptions::default()).await.expect("a port is free");
    let taken = ListenOptions { address: listener.address(), ..ListenOptions::default() };
    let error = bind(taken).await.expect_err("the port is taken");
    assert!(matches!(error, ListenError::Address { .. }));
    assert!(error.to_string().contains(&listener.address().to_string()), "{error}");
    for token in ["", "two words"] {
        let options = ListenOptions { token: Some(token.to_owned()), ..ListenOptions::default() };
        assert!(matches!(bind(options).await, Err(ListenError::Token)));
    }
}

#[tokio::test(start_paused = true)]
async fn listens_on_loopback_and_its_certificate_is_good_for_all_names_of_it() {
    let served = served().await;
    assert!(served.address.ip().is_loopback());
    for name in ["localhost", "127.0.0.1", "::1"] {
        served.tls(name, b"h2").await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(served.tls("example.org", b"h2").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn all_interfaces_are_reached_over_loopback() {
    let options = ListenOptions { address: ([0, 0, 0, 0], 0).into(), ..ListenOptions::default() };
    let served = served_with(options).await;
    assert!(served.kubeconfig.contains(&format!("https://127.0.0.1:{}", served.address.port())));
    served.assert_serves().await;
}
