//! Requests of the scenarios, some of them broken on the way.

use kcm_sandbox_apiserver::SandboxOptions;

use crate::fuzz::choices::{Choices, hold};
use crate::fuzz::probe::Probe;
use crate::fuzz::{corpus, mutate, protobuf};

/// Highest number of requests that are sent of a row.
const MOST_STEPS: usize = 12;

#[test]
fn a_broken_request_gets_a_response_and_the_store_stays_consistent() {
    corpus::rows();
    hold(100, 200, |mut choices| async move {
        let row = choices.one(corpus::rows());
        let mut probe = Probe::new(SandboxOptions::default()).await;
        for step in row.iter().take(MOST_STEPS) {
            let mut ask = step.clone();
            if choices.once_in(3) {
                // Half of the time the valid request comes first, so that its object exists.
                if choices.once_in(2) {
                    probe.ask(&ask).await;
                }
                mutate::request(&mut choices, &mut ask);
            }
            probe.ask(&ask).await;
        }
        probe.still_serves().await;
    });
}

#[test]
fn odd_reads_are_answered_and_change_nothing() {
    hold(40, 100, |mut choices| async move {
        let mut probe = Probe::new(SandboxOptions { watch_window: 3, ..SandboxOptions::default() }).await;
        create_some(&mut choices, &mut probe).await;
        for _ in 0..6 {
            let resource = choices.one(probe.resources());
            let namespace = resource.namespaced.then(|| choices.one(&["cases", "default", "none"]));
            let path = resource.collection_path(namespace.filter(|_| !choices.once_in(4)));
            let path = if choices.once_in(4) { format!("{path}/{}", choices.one(&["web", "none"])) } else { path };
            let mut ask = corpus::RawRequest::new("GET", &path);
            if choices.once_in(3) {
                ask.query.push_str("watch=true");
            }
            mutate::query(&mut choices, &mut ask.query);
            probe.ask(&ask).await;
        }
        probe.still_serves().await;
    });
}

#[test]
fn odd_messages_of_protobuf_are_answered() {
    hold(40, 150, |mut choices| async move {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        for _ in 0..5 {
            let resource = choices.one(probe.resources());
            let body = protobuf::envelope(&mut choices, &resource.api_version(), &resource.kind);
            let path = resource.collection_path(resource.namespaced.then_some("default"));
            let ask = corpus::RawRequest::new("POST", &path).with_body("application/vnd.kubernetes.protobuf", body);
            probe.ask(&ask).await;
        }
        probe.still_serves().await;
    });
}

/// Creates the namespace `cases` and some objects; returns their paths.
pub(crate) async fn create_some(choices: &mut Choices, probe: &mut Probe) -> Vec<String> {
    let namespace = r#"{"metadata":{"name":"cases"}}"#;
    probe.ask(&corpus::RawRequest::new("POST", "/api/v1/namespaces").with_body("application/json", namespace)).await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        let (path, body) = choices.one(corpus::objects());
        let ask = corpus::RawRequest::new("POST", &path).with_body("application/json", body.to_string());
        let made = probe.ask(&ask).await.expect("a plain request is sent");
        if let (201, Some(name)) = (made.code, made.json["metadata"]["name"].as_str()) {
            paths.push(format!("{path}/{name}"));
        }
    }
    paths
}
