//! Bodies that are small, or large and plain, and mean a lot of work.

use kcm_sandbox_apiserver::SandboxOptions;
use serde_json::json;

use crate::fuzz::choices::hold_once;
use crate::fuzz::corpus::RawRequest;
use crate::fuzz::probe::Probe;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_body_that_grows_while_it_is_read_is_refused() {
    hold_once(|_| async {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        let map = json!({ "metadata": { "name": "a" }, "data": { "a": "x".repeat(1000) } }).to_string();
        probe.ask(&RawRequest::new("POST", MAPS).with_body("application/json", map)).await;
        let refused = |body: String, code: u16| {
            let ask = RawRequest::new("PATCH", &format!("{MAPS}/a"));
            (ask.with_body("application/json-patch+json", body), code)
        };
        // Each copy holds all those before it.
        let copies: Vec<_> =
            (0..64).map(|at| json!({ "op": "copy", "from": "/data", "path": format!("/data/{at}") })).collect();
        // Each is added to the previous one.
        let deep: Vec<_> =
            (0..120).map(|at| json!({ "op": "add", "path": "/data/a".repeat(at + 1).replacen("/data/a", "/data", 1), "value": {} })).collect();
        let nested = "[".repeat(240) + &"]".repeat(240);
        let deeper: Vec<_> = (0..40)
            .map(|at| format!(r#"{{"op":"add","path":"/data{}","value":{nested}}}"#, "/0".repeat(240 * at)))
            .collect();
        let text = "x".repeat(100_000);
        let aliases = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b}}\nx: &a {text}\ny: [{}]\n",
            "*a,".repeat(100_000)
        );
        let anchors = format!(
            "apiVersion: v1\nx: {}{}{}\n",
            (0..200).flat_map(|at| ["&a".to_owned(), at.to_string(), " [".to_owned()]).collect::<String>(),
            "1,".repeat(90_000),
            "]".repeat(200)
        );
        for (ask, code) in [
            refused(json!(copies).to_string(), 422),
            refused(json!(deep).to_string(), 422),
            refused(format!("[{}]", deeper.join(",")), 422),
            (RawRequest::new("POST", MAPS).with_body("application/yaml", aliases), 400),
            (RawRequest::new("POST", MAPS).with_body("application/yaml", anchors), 400),
        ] {
            let answer = probe.ask(&ask).await.expect("a plain request is sent");
            assert_eq!(answer.code, code, "{} {}", ask.path, answer.text.chars().take(300).collect::<String>());
        }
        probe.still_serves().await;
    });
}

#[test]
fn a_body_with_very_many_keys_is_read_in_time() {
    hold_once(|_| async {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let keys = |count| {
            (0..count).flat_map(|at| ["  k".to_owned(), at.to_string(), ": ''\n".to_owned()]).collect::<String>()
        };
        let yaml = format!("{head}data:\n{}", keys(90_000));
        let merged = format!("{head}data:\n{}  <<:\n{}", keys(40_000), keys(40_000).replace("  k", "    m"));
        let json = json!({ "metadata": { "name": "a" }, "data": (0..90_000).map(|at| (format!("k{at}"), "")).collect::<std::collections::BTreeMap<_, _>>() });
        for (content_type, body) in
            [("application/yaml", yaml), ("application/yaml", merged), ("application/json", json.to_string())]
        {
            let ask = RawRequest::new("POST", MAPS).with_body(content_type, body);
            let answer = probe.ask(&ask).await.expect("a plain request is sent");
            assert!(
                matches!(answer.code, 201 | 409),
                "{} {}",
                answer.code,
                answer.text.chars().take(300).collect::<String>()
            );
        }
    });
}

#[test]
fn a_watch_may_ask_for_more_seconds_than_there_are() {
    hold_once(|_| async {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        for seconds in [i64::MAX.to_string(), u64::MAX.to_string()] {
            let ask = RawRequest::new("GET", &format!("{MAPS}?watch=true&timeoutSeconds={seconds}"));
            assert!(probe.ask(&ask).await.is_some_and(|answer| answer.code == 200));
        }
    });
}
