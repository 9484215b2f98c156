//! The HTTPS port as the program begins and ends with it.

use std::net::TcpListener;

use crate::support::program::{Folder, Process, run};
use crate::support::server::Server;
use kcm_sandbox_apiserver::Sandbox;

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

/// A free port on 127.0.0.1, as flags.
fn free_port() -> [String; 2] {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    let port = listener.expect("a port is free").port();
    [format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()]
}

/// An API server that does not show its settings of authentication.
fn forbidden(path: &str) -> Option<(u16, &'static str)> {
    path.contains("extension-apiserver-authentication").then_some((
        403,
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}"#,
    ))
}

#[test]
fn a_port_that_is_taken_is_refused_before_anything_else() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    let port = format!("--secure-port={}", address.port());
    let ended = run(MANAGER, &[&port, "--bind-address=127.0.0.1", "--kubeconfig=/none"]);
    let refusals = ended.refusals();
    let begin = format!("cannot listen on {address} for HTTPS: give another --bind-address or --secure-port");
    assert!(refusals.len() == 1 && refusals[0].starts_with(&begin), "{refusals:?}");
}

#[test]
fn what_tls_does_not_support_is_refused_by_its_flag() {
    let flags = [
        "--secure-port=1",
        "--tls-min-version=VersionTLS10",
        "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,TLS_AES_128_GCM_SHA256",
        "--tls-curve-preferences=25",
        "--authorization-always-allow-paths=/a*b",
    ];
    let ended = run(MANAGER, &flags);
    let refusals = ended.refusals();
    for expected in [
        "--tls-min-version: VersionTLS10 is not secure and not supported",
        "--tls-cipher-suites: the cipher suite TLS_RSA_WITH_AES_128_CBC_SHA is not supported",
        "--tls-curve-preferences: the group 25 is not supported",
        "--authorization-always-allow-paths: \"/a*b\" may have a * at its end only",
    ] {
        assert!(refusals.iter().any(|refusal| refusal.starts_with(expected)), "{expected}: {refusals:#?}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_with_their_flag() {
    let server = Server::start(Sandbox::default()).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let [port, address] = free_port();
    for (flag, expected) in [
        ("--authentication-kubeconfig=/none", "cannot use the kubeconfig of --authentication-kubeconfig"),
        ("--authorization-kubeconfig=/none", "cannot use the kubeconfig of --authorization-kubeconfig"),
        ("--client-ca-file=/none", "cannot read the client CAs in /none"),
        ("--tls-sni-cert-key=/none.crt,/none.key", "cannot read /none.crt of the HTTPS port"),
    ] {
        let process = Process::start(MANAGER, &["--leader-elect=false", &kubeconfig, &port, &address, flag]);
        let ended = process.ended().await;
        let errors = ended.errors();
        assert_eq!(ended.code, Some(1), "{flag}: {errors:?}");
        assert!(errors.len() == 1 && errors[0].starts_with(expected), "{flag}: {errors:?}");
    }
}

#[tokio::test]
async fn settings_of_authentication_that_may_not_be_read_end_the_program_unless_that_is_tolerated() {
    let server = Server::start_with(Sandbox::default(), forbidden).await;
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let authentication = kubeconfig.replacen("--kubeconfig", "--authentication-kubeconfig", 1);
    let [port, address] = free_port();
    let arguments = ["--leader-elect=false", "--controllers=replicaset", &kubeconfig, &authentication, &port, &address];
    let mut manager = Process::start(MANAGER, &arguments);
    manager.expect_error("Stopping the controllers, because another part has failed");
    let ended = manager.ended().await;
    let errors = ended.errors();
    assert_eq!(ended.code, Some(2), "{errors:?}");
    assert!(
        errors.len() == 1 && errors[0].contains("the role extension-apiserver-authentication-reader"),
        "{errors:?}"
    );

    let tolerant = [&arguments[..], &["--authentication-tolerate-lookup-failure"]].concat();
    let mut manager = Process::start(MANAGER, &tolerant);
    manager.says("Continuing without the cluster's authentication settings").await;
    manager.says("\"Started controller\" controller=\"replicaset-controller\"").await;
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}
