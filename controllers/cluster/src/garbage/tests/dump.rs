//! The debug page.

use kcm_framework::http::{Request, StatusCode};

use super::fixtures::graph;
use crate::garbage::dump::{dot, page};

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
