//! Requests that need running containers, and warnings for kinds without controllers.

use serde_json::json;

use crate::rows::{PODS, WEB, check, reason, row};
use crate::support::{call, get, pod, post};
use kcm_sandbox_apiserver::{PODS as PODS_RESOURCE, Sandbox};

#[tokio::test(start_paused = true)]
async fn connections_to_containers_are_not_implemented() {
    let made = || vec![post(PODS, &pod("web"))];
    let programs =
        "the sandbox runs no programs: pods have no exec, attach or port-forward (see `sandbox --differences`)";
    for (name, ask, why) in [
        ("exec", post(&format!("{WEB}/exec?command=sh"), &json!({})), programs),
        ("attach", get(&format!("{WEB}/attach")), programs),
        ("port-forward", post(&format!("{WEB}/portforward"), &json!({})), programs),
        (
            "proxy",
            get("/api/v1/namespaces/default/services/web/proxy/a/b"),
            "the sandbox runs no programs: there is nothing behind nodes, pods and services (see `sandbox --differences`)",
        ),
        (
            "a token",
            post("/api/v1/namespaces/default/serviceaccounts/default/token", &json!({})),
            "the sandbox issues no tokens of service accounts: use that of its kubeconfig (see `sandbox --differences`)",
        ),
    ] {
        check(row(name, made(), ask, 501, reason("NotImplemented", why))).await;
    }
    check(row("nothing of the kind", made(), get(&format!("{WEB}/exek")), 404, vec![])).await;
}

#[tokio::test(start_paused = true)]
async fn creating_an_unreconciled_kind_returns_a_warning() {
    let sandbox = Sandbox::default();
    sandbox.mark_unreconciled([kcm_sandbox_apiserver::CONFIG_MAPS]);
    let maps = "/api/v1/namespaces/default/configmaps";
    let warned =
        call(&sandbox, &post(maps, &json!({ "metadata": { "name": "a" } }))).await.expect("no fault is at work");
    assert_eq!(
        warned.headers["warning"],
        "299 - \"no controller for configmaps runs in this sandbox: it is stored and nothing else happens\""
    );
    let reconciled = call(&sandbox, &post(PODS, &pod("web"))).await.expect("no fault is at work");
    assert!(!reconciled.headers.contains_key("warning"));
}

#[tokio::test(start_paused = true)]
async fn impersonation_is_not_implemented() {
    let sandbox = Sandbox::default();
    for header in ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-scopes"] {
        let answer = call(&sandbox, &get(PODS).header(header, "someone-else")).await.expect("no fault is at work");
        assert_eq!((answer.code, answer.text_at("/reason")), (501, "NotImplemented"), "{header}: {}", answer.text);
        assert!(answer.text_at("/message").contains("impersonation"), "{}", answer.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_contains_start_and_end_of_the_container() {
    let sandbox = Sandbox::default();
    let log = format!("{WEB}/log");
    let created = call(&sandbox, &post(PODS, &pod("web"))).await.expect("no fault is at work");
    let waiting = call(&sandbox, &get(&log)).await.expect("no fault is at work");
    assert_eq!(waiting.text_at("/message"), "container \"main\" in pod \"web\" is waiting to start: ContainerCreating");
    let status = json!({ "containerStatuses": [{
        "name": "main", "image": "web:1", "imageID": "", "ready": true, "restartCount": 2,
        "lastState": { "terminated": {
            "exitCode": 3, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z",
        } },
        "state": { "running": { "startedAt": "2026-01-01T00:00:15Z" } },
    }] });
    let key = kcm_sandbox_apiserver::ObjectKey::namespaced("default", "web");
    sandbox.patch_status(&PODS_RESOURCE, &key, &json!({ "status": status })).expect("the status is well formed");
    for (query, line) in [
        ("", "2026-01-01T00:00:15Z started, after 2 restarts\n"),
        ("?previous=true", "2026-01-01T00:00:05Z exited with code 3\n"),
    ] {
        let answer = call(&sandbox, &get(&format!("{log}{query}"))).await.expect("no fault is at work");
        assert!(answer.text.ends_with(line), "{}", answer.text);
        assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    }
    let other = call(&sandbox, &get(&format!("{log}?container=side"))).await.expect("no fault is at work");
    assert_eq!((other.code, other.text_at("/message")), (400, "container side is not valid for pod web"));
    assert_eq!(created.code, 201);
}
