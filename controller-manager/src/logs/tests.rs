//! Tests of the format of lines.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kcm_config::ModuleLevel;
use kcm_framework::clock::Clock;
use tracing::{debug, error, info, info_span, trace, warn};
use tracing_subscriber::layer::SubscriberExt as _;

use super::fields::Format;
use super::streams::Streams;
use super::{Filter, LogOptions, Logs, UNSTRUCTURED};

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        "2026-11-23T01:02:03.000004Z".parse().expect("it is a time")
    }
}

/// A stream that keeps its content.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panics").clone()).expect("lines are UTF-8")
    }
}

/// Logs that are written to `out`, and the subscriber that writes them.
#[cfg(feature = "builtin")]
pub(crate) fn logs_to(
    out: impl Write + Send + 'static,
    options: LogOptions,
    clock: Arc<dyn Clock>,
) -> (Logs, impl tracing::Subscriber + Send + Sync) {
    let streams = Streams::new(options.format, Box::new(out), None);
    let (logs, layer) = Logs::new(options, streams, clock, TimeZone::UTC, 1);
    (logs, tracing_subscriber::registry().with(layer))
}

fn options(format: Format, filter: Filter) -> LogOptions {
    LogOptions { format, filter, split: None, flush_frequency: Duration::from_secs(5) }
}

/// Returns the log that is written while `log` runs.
fn written(format: Format, filter: Filter, log: impl FnOnce(&Logs)) -> String {
    written_in(TimeZone::UTC, format, filter, log)
}

fn written_in(zone: TimeZone, format: Format, filter: Filter, log: impl FnOnce(&Logs)) -> String {
    let kept = Kept::default();
    let streams = Streams::new(format, Box::new(kept.clone()), None);
    let (logs, layer) = Logs::new(options(format, filter), streams, Arc::new(Fixed), zone, 12345);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || log(&logs));
    kept.text()
}

/// The lines without their numbers, which change with this file.
fn lines(format: Format, log: impl FnOnce(&Logs)) -> Vec<String> {
    let text = written(format, Filter::new(0), log);
    text.split_terminator('\n').map(without_number).collect()
}

fn without_number(line: &str) -> String {
    match line.split_once("tests.rs:") {
        Some((before, after)) => {
            format!("{before}tests.rs:N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write")]
struct Outer(#[source] Inner);

#[derive(Debug, thiserror::Error)]
#[error("the disk is \"full\"")]
struct Inner;

#[test]
fn text_is_klogs() {
    let lines = lines(Format::Text, |_| {
        info!("Starting");
        info!(controller = "a", count = 3_u64, ratio = 0.5, ready = true, key = %"x/y", list = ?["z"], "Several \"things\"\n");
        warn!(error = &Outer(Inner) as &dyn std::error::Error, replica_set = "x/y", "Failed");
        error!("Failed");
        info!(several = "one\ntwo\n", last = "\na", "Lines");
        warn!(target: UNSTRUCTURED, "FLAG: --{}={:?}", "v", "0");
        debug!("Not printed");
    });
    let expected = r#"
I1123 01:02:03.000004   12345 tests.rs:N] "Starting"
I1123 01:02:03.000004   12345 tests.rs:N] "Several \"things\"\n" controller="a" count=3 ratio=0.5 ready=true key="x/y" list="[\"z\"]"
W1123 01:02:03.000004   12345 tests.rs:N] "Failed" err="cannot write: the disk is \"full\"" replicaSet="x/y"
E1123 01:02:03.000004   12345 tests.rs:N] "Failed"
I1123 01:02:03.000004   12345 tests.rs:N] "Lines" several=<
	one
	two
 > last=<
	
	a
 >
W1123 01:02:03.000004   12345 tests.rs:N] FLAG: --v="0"
"#;
    assert_eq!(lines, expected.trim().lines().collect::<Vec<_>>());
}

#[test]
fn times_in_text_are_those_of_the_zone_and_in_json_of_none() {
    let zones =
        [(TimeZone::UTC, "I1123 01:02:03.000004 "), (TimeZone::fixed(jiff::tz::offset(-5)), "I1122 20:02:03.000004 ")];
    for (zone, expected) in zones {
        let text = written_in(zone.clone(), Format::Text, Filter::new(0), |_| info!("Starting"));
        assert!(text.starts_with(expected), "{text}");
        let json = written_in(zone, Format::Json, Filter::new(0), |_| info!("Starting"));
        assert!(json.starts_with(r#"{"ts":1795395723000.0042,"#), "{json}");
    }
}

#[test]
fn a_field_with_the_name_message_is_one_like_others() {
    let lines = lines(Format::Text, |_| info!(message = "Created pod: x", "Event occurred"));
    assert_eq!(lines, [r#"I1123 01:02:03.000004   12345 tests.rs:N] "Event occurred" message="Created pod: x""#]);
}

#[test]
fn json_has_upstreams_keys() {
    let lines = lines(Format::Json, |_| {
        info!(v = 0, count = 3, key = %"x/y", "Say \"hi\"");
        let span = info_span!("reconcile", controller = "a", namespace = "x", name = tracing::field::Empty);
        span.record("name", "y");
        span.in_scope(|| error!(error = &Outer(Inner) as &dyn std::error::Error, key = "a\nb", "Failed"));
        warn!(target: UNSTRUCTURED, "Deprecated: {}", "x");
    });
    let expected = [
        r#"{"ts":1795395723000.0042,"caller":"logs/tests.rs:N","msg":"Say \"hi\"","v":0,"count":3,"key":"x/y"}"#,
        r#"{"ts":1795395723000.0042,"logger":"a","caller":"logs/tests.rs:N","msg":"Failed","namespace":"x","name":"y","key":"a\nb","err":"cannot write: the disk is \"full\""}"#,
        r#"{"ts":1795395723000.0042,"caller":"logs/tests.rs:N","msg":"Deprecated: x","v":0}"#,
    ];
    assert_eq!(lines, expected);
    for line in lines {
        serde_json::from_str::<serde_json::Value>(&line).expect("each line is an object");
    }
}

#[test]
fn the_controller_of_a_span_is_the_logger_and_of_equal_keys_the_last_counts() {
    let lines = lines(Format::Text, |_| {
        let _outer = info_span!("outer", controller = "a", key = "x", same = 1).entered();
        let _inner = info_span!("inner", key = "y").entered();
        info!(key = "z", same = 1, other = 2, "Planned");
    });
    assert_eq!(lines, [r#"I1123 01:02:03.000004   12345 tests.rs:N] "Planned" logger="a" same=1 key="z" other=2"#]);
}

fn messages(filter: Filter) -> Vec<String> {
    let text = written(Format::Text, filter, |_| {
        warn!("warn");
        info!("0");
        info!(v = 2, "2");
        debug!("4");
        trace!("6");
        info_span!("reconcile", controller = "replicaset-controller").in_scope(|| debug!("4 in a reconcile"));
    });
    text.lines().map(|line| line.split('"').nth(1).expect("the message is quoted").to_owned()).collect()
}

fn with_modules(pattern: &str) -> Filter {
    Filter::new(0).modules(vec![ModuleLevel { pattern: pattern.to_owned(), level: 4 }])
}

#[test]
fn verbosity_and_modules_choose_what_is_printed() {
    let cases = [
        (Filter::warnings(), &["warn"][..]),
        (Filter::new(0), &["warn", "0"]),
        (Filter::new(2), &["warn", "0", "2"]),
        (Filter::new(4), &["warn", "0", "2", "4", "4 in a reconcile"]),
        (Filter::new(6), &["warn", "0", "2", "4", "6", "4 in a reconcile"]),
        (with_modules("replicaset-*"), &["warn", "0", "4 in a reconcile"]),
        (with_modules("tests"), &["warn", "0", "2", "4", "4 in a reconcile"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(messages(filter.clone()), expected, "{filter:?}");
    }
}

#[test]
fn a_change_of_the_filter_counts_at_once() {
    let text = written(Format::Text, Filter::new(0), |logs| {
        for (verbosity, message) in [(0, "not yet"), (4, "now"), (0, "no more")] {
            logs.set_filter(Filter::new(verbosity));
            debug!(message);
        }
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("now"), "{text}");
}

/// Logs information, a warning and an error with streams apart, and returns the content of each before and after the
/// end.
fn split(format: Format, size: usize) -> [(String, String); 2] {
    let (info, error) = (Kept::default(), Kept::default());
    let streams = Streams::new(format, Box::new(error.clone()), Some((Box::new(info.clone()), size)));
    let (logs, layer) = Logs::new(options(format, Filter::new(0)), streams, Arc::new(Fixed), TimeZone::UTC, 1);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        info!("first");
        warn!("second");
        error!("third");
    });
    let before = (info.text(), error.text());
    drop(logs);
    [before, (info.text(), error.text())]
}

#[test]
fn streams_apart_have_information_and_errors() {
    let counts = |(info, error): &(String, String)| (info.lines().count(), error.lines().count());
    assert_eq!(split(Format::Text, 0).each_ref().map(counts), [(1, 2), (1, 2)]);
    assert_eq!(split(Format::Json, 0).each_ref().map(counts), [(2, 1), (2, 1)]);
}

#[test]
fn what_is_buffered_is_written_at_the_end() {
    let counts = |(info, error): &(String, String)| (info.lines().count(), error.lines().count());
    assert_eq!(split(Format::Text, 1000).each_ref().map(counts), [(0, 2), (1, 2)]);
}

#[test]
fn a_buffer_holds_whole_lines_and_never_more_than_its_size() {
    let info = Kept::default();
    let streams = Streams::new(Format::Text, Box::new(io::sink()), Some((Box::new(info.clone()), 10)));
    for (line, written) in [("12345\n", 0), ("123\n", 0), ("1\n", 10), ("1234567890123\n", 26), ("1\n", 26)] {
        streams.write(tracing::Level::INFO, line);
        assert_eq!(info.text().len(), written, "after {line:?}");
    }
    streams.flush();
    assert_eq!(info.text(), "12345\n123\n1\n1234567890123\n1\n");
}

#[tokio::test(start_paused = true)]
async fn a_buffer_is_written_as_often_as_the_settings_say() {
    let info = Kept::default();
    let streams = Streams::new(Format::Text, Box::new(io::sink()), Some((Box::new(info.clone()), 1000)));
    let (logs, _layer) = Logs::new(options(Format::Text, Filter::new(0)), streams, Arc::new(Fixed), TimeZone::UTC, 1);
    logs.streams.write(tracing::Level::INFO, "line\n");
    let mut flushes = std::pin::pin!(logs.flush_periodically());
    drop(tokio::time::timeout(Duration::from_millis(4999), &mut flushes).await);
    assert_eq!(info.text(), "");
    drop(tokio::time::timeout(Duration::from_millis(2), &mut flushes).await);
    assert_eq!(info.text(), "line\n");
}
