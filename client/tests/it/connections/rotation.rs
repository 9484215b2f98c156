//! Certificates, tokens and exec plugins that change while a client is used.

use std::time::Duration;

use futures::FutureExt;
use http_body_util::BodyExt;
use kcm_client::{ExecPluginMetrics, connect, connect_seeded};
use kube::client::Body;
use kube::config::ExecConfig;
use serde_json::json;

use crate::connections::server::{Authority, Folder, Identity, Server, ask, watch, who};

/// Lets two minutes pass, in which files are read again.
///
/// In steps, each with a request, so that the pings of connections are answered.
async fn minutes_pass(client: &kube::Client) {
    for _ in 0..24 {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(5)).await;
        tokio::time::resume();
        who(client).await;
    }
}

/// Lets minutes pass until a watch has ended.
async fn ends(watch: &mut Body, client: &kube::Client) {
    loop {
        match watch.frame().now_or_never() {
            None => minutes_pass(client).await,
            Some(None) => return,
            Some(Some(frame)) => panic!("{frame:?}"),
        }
    }
}

fn with_certificate(server: &Server, folder: &Folder) -> kube::Config {
    let mut config = server.config.clone();
    config.auth_info.client_certificate = Some(folder.string("tls.crt"));
    config.auth_info.client_key = Some(folder.string("tls.key"));
    config
}

fn mount(folder: &Folder, data: &str, identity: &Identity) {
    folder.mount(data, &[("tls.crt", &identity.certificate), ("tls.key", &identity.key)]);
}

#[tokio::test]
async fn a_client_certificate_that_is_replaced_is_used_and_the_watches_of_the_old_one_end() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    mount(&folder, "..1", &authority.client(1));
    let client = connect(&with_certificate(&server, &folder)).unwrap();
    assert_eq!(who(&client).await, "1 none");
    let mut old = watch(&client).await;
    assert_eq!(server.connections(), 2);

    mount(&folder, "..2", &authority.client(2));
    assert_eq!(who(&client).await, "1 none", "it is not read for each request");
    ends(&mut old, &client).await;
    assert_eq!(who(&client).await, "2 none");
    let _new = watch(&client).await;
    assert_eq!(server.connections(), 4);
}

#[tokio::test]
async fn a_certificate_without_its_key_changes_nothing_until_the_key_is_there() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    let (one, two) = (authority.client(1), authority.client(2));
    folder.write("tls.crt", &one.certificate);
    folder.write("tls.key", &one.key);
    let client = connect(&with_certificate(&server, &folder)).unwrap();
    let mut old = watch(&client).await;
    for torn in [two.certificate.as_str(), "", "not a certificate"] {
        folder.write("tls.crt", torn);
        minutes_pass(&client).await;
        assert_eq!(who(&client).await, "1 none", "{torn}");
    }
    folder.write("tls.crt", &two.certificate);
    folder.write("tls.key", &two.key);
    ends(&mut old, &client).await;
    assert_eq!(who(&client).await, "2 none");
}

#[tokio::test]
async fn files_that_stay_as_they_are_renew_no_connection() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    mount(&folder, "..1", &authority.client(1));
    let client = connect(&with_certificate(&server, &folder)).unwrap();
    let mut open = watch(&client).await;
    for _ in 0..3 {
        minutes_pass(&client).await;
        assert_eq!(who(&client).await, "1 none");
    }
    assert_eq!(server.connections(), 2);
    assert!(open.frame().now_or_never().is_none(), "the watch is open");
}

#[tokio::test]
async fn connections_are_replaced_at_an_age_that_the_seed_draws_and_watches_end_by_themselves() {
    let mut ages = Vec::new();
    for seed in [1, 2] {
        let server = Server::start(&Authority::new()).await;
        let client = connect_seeded(&server.config, &ExecPluginMetrics::default(), seed).unwrap();
        who(&client).await;
        let mut open = watch(&client).await;
        assert_eq!(server.connections(), 2);
        let begun = tokio::time::Instant::now();
        while server.connections() == 2 {
            assert!(begun.elapsed() < Duration::from_mins(64));
            minutes_pass(&client).await;
        }
        let age = begun.elapsed();
        assert!(age >= Duration::from_mins(30), "{age:?}");
        assert!(open.frame().now_or_never().is_none(), "the watch is open");
        drop(watch(&client).await);
        assert_eq!(server.connections(), 4, "new watches go over another connection");
        ages.push(age.as_secs() / 60);
    }
    assert_ne!(ages[0], ages[1]);
}

#[tokio::test]
async fn a_replaced_ca_is_trusted_after_the_first_connection_that_fails() {
    let (old, new) = (Authority::new(), Authority::new());
    let (server, folder) = (Server::start(&new).await, Folder::new());
    folder.mount("..1", &[("ca.crt", &old.pem())]);
    let mut config = server.config.clone();
    (config.root_cert, config.root_cert_file) = (None, Some(folder.path("ca.crt")));
    let client = connect(&config).unwrap();
    folder.mount("..2", &[("ca.crt", &format!("{}{}", old.pem(), new.pem()))]);
    ask(&client, "").await.unwrap_err();
    let mut answer = ask(&client, "").await;
    while answer.is_err() {
        tokio::task::yield_now().await;
        answer = ask(&client, "").await;
    }
    assert_eq!(answer.unwrap(), "0 none");
}

#[tokio::test]
async fn a_token_that_is_replaced_is_sent_within_a_minute_or_after_a_401() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    folder.mount("..1", &[("token", "one\n")]);
    let mut config = server.config.clone();
    config.auth_info.token_file = Some(folder.string("token"));
    let client = connect(&config).unwrap();
    assert_eq!(who(&client).await, "0 Bearer one");
    folder.mount("..2", &[("token", "two\n")]);
    minutes_pass(&client).await;
    assert_eq!(who(&client).await, "0 Bearer two");
    folder.mount("..3", &[("token", "three\n")]);
    assert_eq!(ask(&client, "refuse").await.unwrap(), "0 Bearer two");
    assert_eq!(who(&client).await, "0 Bearer three");
    assert_eq!(server.connections(), 1, "a token needs no other connection");
}

#[tokio::test]
async fn an_exec_plugin_whose_certificate_changes_renews_the_connections() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    let print = |user| {
        let Identity { certificate, key } = authority.client(user);
        let status = json!({ "clientCertificateData": certificate, "clientKeyData": key, "token": format!("t{user}") });
        let printed = json!({ "apiVersion": "client.authentication.k8s.io/v1", "status": status });
        folder.write("printed", &printed.to_string());
    };
    print(1);
    let mut config = server.config.clone();
    config.auth_info.exec = Some(ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1".to_owned()),
        command: Some("/bin/cat".to_owned()),
        args: Some(vec![folder.string("printed")]),
        ..ExecConfig::default()
    });
    let client = connect(&config).unwrap();
    assert_eq!(who(&client).await, "1 Bearer t1");
    let mut old = watch(&client).await;
    print(2);
    assert_eq!(who(&client).await, "1 Bearer t1", "its credentials have not expired");
    assert_eq!(ask(&client, "refuse").await.unwrap(), "1 Bearer t1");
    assert_eq!(who(&client).await, "2 Bearer t2");
    assert!(old.frame().await.is_none(), "the watch ends");
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_certificate_beside_an_exec_plugin_leaves_the_plugin_out() {
    let authority = Authority::new();
    let (server, folder) = (Server::start(&authority).await, Folder::new());
    mount(&folder, "..1", &authority.client(1));
    let mut config = with_certificate(&server, &folder);
    config.auth_info.exec = Some(ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1".to_owned()),
        command: Some("/bin/false".to_owned()),
        ..ExecConfig::default()
    });
    assert_eq!(who(&connect(&config).unwrap()).await, "1 none");
}
