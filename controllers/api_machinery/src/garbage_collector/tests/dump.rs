//! The debug page.

use kcm_framework::http::{Request, StatusCode};

use super::fixtures::graph;
use crate::garbage_collector::dump::{dot, page};

#[test]
fn the_graph_is_drawn_as_upstream_draws_it() {
    let (graph, _) = graph(&["a!", "x<a b", "alone"]);
    let text = dot(&graph.draw());
    assert!(text.starts_with("strict digraph full {\n  // Node definitions.\n  \"a\" [\n"), "{text}");
    assert!(text.ends_with("  // Edge definitions.\n  \"x\" -> \"a\";\n  \"x\" -> \"b\";\n}\n"), "{text}");
    for line in [
        r#"    label="uid=a\nnamespace=default\nConfigMap.v1/a\nbeingDeleted,deletingDependents\n""#,
        r#"    label="uid=b\nnamespace=default\nConfigMap.v1/b\nvirtual\n""#,
        r#"    deletingDependents="true""#,
        r#"    virtual="true""#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("alone"), "what has neither owners nor dependents is left out");
    assert_eq!(dot(&graph.draw_around(&["alone".into()])).lines().count(), 16);
}

#[test]
fn the_page_shows_all_or_what_is_joined_to_an_object() {
    let (graph, _) = graph(&["a", "x<a", "b", "y<b"]);
    let get = |path: &str| page(&graph, &Request::get(path).body(()).unwrap());
    let all = get("/graph");
    assert_eq!((all.status(), &all.headers()["content-type"]), (StatusCode::OK, &"text/vnd.graphviz".parse().unwrap()));
    assert!(all.body().contains("\"x\" -> \"a\"") && all.body().contains("\"y\" -> \"b\""));
    let one = get("/graph?uid=x");
    assert!(one.body().contains("\"x\" -> \"a\"") && !one.body().contains("\"y\" -> \"b\""));
    assert_eq!(get("/").status(), StatusCode::NOT_FOUND);
}

#[test]
fn the_uids_of_a_name_are_found_but_not_of_what_is_only_named() {
    let (graph, _) = graph(&["a", "x<a b"]);
    let find = |query: &str| page(&graph, &Request::get(format!("/uids?{query}")).body(()).unwrap()).into_body();
    let x = r#"{"objects":[{"kind":"ConfigMap","resource":"configmaps","uid":"x"}]}"#;
    assert_eq!(find("namespace=default&name=x"), x);
    for none in ["namespace=other&name=x", "namespace=default&name=b", "namespace=default", ""] {
        assert_eq!(find(none), r#"{"objects":[]}"#, "{none}");
    }
}
