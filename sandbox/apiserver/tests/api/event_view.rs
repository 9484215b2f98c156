//! Events in their two forms.

use kcm_sandbox_apiserver::{EVENTS, Sandbox};
use serde_json::{Value, json};

use crate::rows::{check, reason, row};
use crate::support::{TestRequest, delete, done, get, merge, post, put, watch, with};

const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const CORE: &str = "/api/v1/namespaces/default/events";

fn event() -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "web.1" },
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "example.org/mirror",
        "reportingInstance": "mirror-0", "action": "Copy", "reason": "Copied", "type": "Normal", "note": "made a copy",
        "regarding": { "apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "web" },
    })
}

fn old_event() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "web.1" }, "type": "Normal", "reason": "Copied",
        "involvedObject": { "kind": "ConfigMap", "namespace": "default", "name": "web" }, "message": "made a copy",
        "source": { "component": "mirror" }, "firstTimestamp": "2026-01-01T00:00:00Z", "count": 3,
    })
}

#[tokio::test(start_paused = true)]
#[expect(clippy::too_many_lines, reason = "a table: a row per behaviour")]
async fn both_forms_show_one_event() {
    let one = &format!("{NEW}/web.1");
    let core = &format!("{CORE}/web.1");
    let made = || vec![post(NEW, &event())];
    let old = || vec![post(CORE, &old_event())];
    let apply = |body: &Value| TestRequest {
        path: format!("{NEW}/web.1?fieldManager=me"),
        ..crate::support::patch("application/apply-patch+yaml", one, body)
    };
    let series = json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z" } });
    for row in [
        row(
            "made in the new form",
            vec![],
            post(NEW, &event()),
            201,
            vec![
                ("/apiVersion", json!("events.k8s.io/v1")),
                ("/note", json!("made a copy")),
                ("/regarding/name", json!("web")),
                ("/deprecatedSource", json!({})),
                ("/message", Value::Null),
            ],
        )
        .sees(CORE, vec!["ADDED web.1"]),
        row(
            "read in the old form",
            made(),
            get(core),
            200,
            vec![
                ("/apiVersion", json!("v1")),
                ("/message", json!("made a copy")),
                ("/involvedObject/name", json!("web")),
                ("/reportingComponent", json!("example.org/mirror")),
                ("/note", Value::Null),
            ],
        ),
        row(
            "made in the old form",
            old(),
            get(one),
            200,
            vec![
                ("/note", json!("made a copy")),
                ("/deprecatedCount", json!(3)),
                ("/deprecatedFirstTimestamp", json!("2026-01-01T00:00:00Z")),
                ("/deprecatedLastTimestamp", Value::Null),
                ("/deprecatedSource/component", json!("mirror")),
                ("/reportingController", Value::Null),
                ("/count", Value::Null),
            ],
        ),
        row(
            "listed by the new names",
            made(),
            get(&format!("{NEW}?fieldSelector=regarding.name%3Dweb,reportingController%3Dexample.org/mirror")),
            200,
            vec![
                ("/kind", json!("EventList")),
                ("/apiVersion", json!("events.k8s.io/v1")),
                ("/items/0/note", json!("made a copy")),
                ("/items/0/kind", Value::Null),
            ],
        ),
        row(
            "the old names select nothing here",
            made(),
            get(&format!("{NEW}?fieldSelector=involvedObject.name%3Dweb")),
            400,
            reason("BadRequest", "field label not supported: involvedObject.name"),
        ),
        row(
            "a series in a merge patch",
            made(),
            merge(one, &series),
            200,
            vec![("/series/count", json!(2)), ("/note", json!("made a copy"))],
        )
        .sees(NEW, vec!["MODIFIED web.1"]),
        row(
            "what it is about stays",
            made(),
            merge(one, &json!({ "regarding": { "name": "other" } })),
            422,
            vec![("/reason", json!("Invalid")), ("/details/causes/0/field", json!("involvedObject"))],
        ),
        row(
            "a series by put",
            made(),
            put(one, &with(event(), &series)),
            200,
            vec![("/series/count", json!(2)), ("/regarding/name", json!("web"))],
        ),
        row("applied", made(), apply(&with(event(), &series)), 200, vec![("/series/count", json!(2))]),
        row(
            "more is asked of the new form",
            vec![],
            post(NEW, &with(event(), &json!({ "eventTime": null, "deprecatedCount": 2 }))),
            422,
            vec![("/details/group", json!("events.k8s.io")), ("/details/causes/0/field", json!("eventTime"))],
        ),
        row("not there", vec![], get(one), 404, reason("NotFound", "events.events.k8s.io \"web.1\" not found")),
        row("deleted", made(), delete(one), 200, vec![("/details/group", json!("events.k8s.io"))])
            .sees(CORE, vec!["DELETED web.1"]),
    ] {
        check(row).await;
    }
}

#[cfg(feature = "kubectl")]
#[tokio::test(start_paused = true)]
async fn both_forms_are_printed_alike() {
    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let one = &format!("{NEW}/web.1");
    for row in [
        row(
            "printed",
            vec![post(NEW, &event())],
            get(&format!("{one}?includeObject=Object")).header("accept", TABLE),
            200,
            vec![
                ("/rows/0/cells/3", json!("configmap/web")),
                ("/rows/0/cells/6", json!("made a copy")),
                ("/rows/0/object/note", json!("made a copy")),
            ],
        ),
        row(
            "printed as it is made",
            vec![],
            post(NEW, &event()).header("accept", TABLE),
            201,
            vec![("/rows/0/cells/3", json!("configmap/web"))],
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_speaks_its_form_from_the_first_event_to_the_bookmark() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(CORE, &old_event())).await;
    let mut watching = watch(
        &sandbox,
        &format!("{NEW}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    )
    .await;
    let mut next = async || watching.next().await.expect("the stream goes on").expect("nothing breaks");
    let added = next().await;
    assert_eq!((&added["type"], &added["object"]["note"]), (&json!("ADDED"), &json!("made a copy")));
    let bookmark = next().await;
    assert_eq!(bookmark["object"]["apiVersion"], "events.k8s.io/v1");
    assert!(bookmark["object"].get("regarding").is_some(), "{bookmark}");
    assert_eq!(sandbox.list(&EVENTS, None).len(), 1);
}
