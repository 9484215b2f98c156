use super::*;

#[test]
fn splits_every_kind_of_event() {
    for kind in EventKind::ALL {
        let line = format!(r#"{{"type":"{}","object":{{"a":{{"b":1}}}}}}"#, kind.as_str());
        let expected = Event { kind, object: Object::Json(r#"{"a":{"b":1}}"#) };
        assert_eq!(Event::split(line.as_bytes()).unwrap(), expected);
        assert_eq!(Event::parse(line.as_bytes()).unwrap(), expected);
    }
}

#[test]
fn reads_fields_in_any_order() {
    let line = br#"{ "object": {"a":1}, "more": true, "type": "ADDED" }"#;
    assert_eq!(Event::split(line).unwrap(), Event { kind: EventKind::Added, object: Object::Json(r#"{"a":1}"#) });
}

#[test]
fn a_line_that_is_no_event_is_an_error() {
    for line in [&b"{"[..], b"{}", b"\xff", br#"{"type":"ADDED"}"#, br#"{"type":7,"object":{}}"#] {
        let error = Event::split(line).unwrap_err();
        assert!(matches!(error, EventError::Malformed(_)), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn a_type_that_is_unknown_is_named() {
    let error = Event::split(br#"{"type":"FUTURE","object":{}}"#).unwrap_err();
    assert_eq!(error.to_string(), r#"the type of the event, "FUTURE", is unknown"#);
}

#[test]
fn a_bookmark_ends_the_initial_events_when_it_says_so() {
    let bookmark = |annotations: &str| {
        let json = format!(r#"{{"metadata":{{"resourceVersion":"7"{annotations}}}}}"#);
        Bookmark::read(Object::Json(&json)).unwrap()
    };
    let rows = [
        ("", false),
        (r#","annotations":null"#, false),
        (r#","annotations":{"a":"b"}"#, false),
        (r#","annotations":{"k8s.io/initial-events-end":"false"}"#, false),
        (r#","annotations":{"k8s.io/initial-events-end":"true"}"#, true),
    ];
    for (annotations, ends) in rows {
        let expected = Bookmark { version: ResourceVersion::from(7), ends_initial_events: ends };
        assert_eq!(bookmark(annotations), expected, "{annotations}");
    }
}

#[test]
fn reads_pages_with_and_without_items() {
    let page = Page::read(br#"{"metadata":{"resourceVersion":"5","continue":"c"},"items":[{"a":1}]}"#).unwrap();
    assert_eq!(page.metadata.continue_token.as_deref(), Some("c"));
    assert_eq!(page.items, [Object::Json(r#"{"a":1}"#)]);
    let status = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}"#;
    assert!(Page::read(status).unwrap_err().to_string().contains("no list"));
    let empty = Page::read(br#"{"metadata":{"resourceVersion":"5"},"items":null}"#).unwrap();
    assert!(empty.items.is_empty());
}
