//! One log line, in klog's text or as JSON.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tracing::Level;

use super::fields::{Format, json_string};
use super::quote::quote;

/// Everything that a line says.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) level: Level,
    pub(super) verbosity: i32,
    pub(super) now: Timestamp,
    /// The zone of the times in text; JSON has none.
    pub(super) zone: &'a TimeZone,
    pub(super) process: u32,
    pub(super) file: &'a str,
    pub(super) number: u32,
    pub(super) message: &'a str,
    /// Whether the message is a whole line, like klog's unstructured messages. The text has no quotes then.
    pub(super) is_unstructured: bool,
    pub(super) logger: Option<&'a str>,
    pub(super) error: Option<&'a str>,
    /// Keys and rendered values: first of the spans, from the outermost on, then of the event.
    pub(super) pairs: Vec<(&'static str, &'a str)>,
}

impl Line<'_> {
    /// The line with its end.
    pub(super) fn render(mut self, format: Format) -> String {
        last_of_each_key(&mut self.pairs);
        match format {
            Format::Text => self.text(),
            Format::Json => self.json(),
        }
    }

    /// # Upstream
    /// The header and the pairs of klog 2.140.
    fn text(&self) -> String {
        let severity = match self.level {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            Level::INFO | Level::DEBUG | Level::TRACE => 'I',
        };
        let now = self.now.to_zoned(self.zone.clone());
        let mut out = String::with_capacity(256);
        let header = write!(
            out,
            "{severity}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:>7} {}:{}] ",
            now.month(),
            now.day(),
            now.hour(),
            now.minute(),
            now.second(),
            now.subsec_nanosecond() / 1000,
            self.process,
            last_segments(self.file, 1),
            self.number
        );
        header.expect("a string takes everything");
        if self.is_unstructured {
            out.push_str(self.message);
        } else {
            quote(&mut out, self.message);
        }
        let error = self.error.map(|error| ("err", error));
        let logger = self.logger.map(|logger| ("logger", logger));
        for (key, value) in error.into_iter().chain(logger).chain(self.pairs.iter().copied()) {
            out.push(' ');
            push_camel_case(&mut out, key);
            out.push('=');
            out.push_str(value);
        }
        out.push('\n');
        out
    }

    /// # Upstream
    /// The keys of `k8s.io/component-base/logs/json`. A warning has the verbosity 0, an error has no verbosity, as
    /// upstream.
    fn json(&self) -> String {
        let mut out = String::with_capacity(256);
        let mut object = Object { out: &mut out, is_empty: true };
        object.entry("ts", |out| write!(out, "{}", milliseconds(self.now)).expect("a string takes everything"));
        if let Some(logger) = self.logger {
            object.entry("logger", |out| out.push_str(logger));
        }
        object.entry("caller", |out| {
            json_string(out, &format!("{}:{}", last_segments(self.file, 2), self.number));
        });
        object.entry("msg", |out| json_string(out, self.message));
        if self.level != Level::ERROR {
            object.entry("v", |out| write!(out, "{}", self.verbosity).expect("a string takes everything"));
        }
        for (key, value) in &self.pairs {
            object.entry(key, |out| out.push_str(value));
        }
        if let Some(error) = self.error {
            object.entry("err", |out| out.push_str(error));
        }
        out.push_str("}\n");
        out
    }
}

struct Object<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl Object<'_> {
    fn entry(&mut self, key: &str, value: impl FnOnce(&mut String)) {
        self.out.push_str(if self.is_empty { "{\"" } else { ",\"" });
        self.is_empty = false;
        push_camel_case(self.out, key);
        self.out.push_str("\":");
        value(self.out);
    }
}

/// Returns the time in the form of upstream's JSON: milliseconds since 1970, with a fraction.
fn milliseconds(now: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "as upstream's, to a quarter of a microsecond")]
    let nanoseconds = now.as_nanosecond() as f64;
    nanoseconds / 1e6
}

/// Keeps the last value of each key. If the same pair occurs earlier, keeps its earlier place.
fn last_of_each_key(pairs: &mut Vec<(&'static str, &str)>) {
    let mut kept: Vec<(&'static str, &str)> = Vec::with_capacity(pairs.len());
    for pair in pairs.drain(..) {
        if !kept.contains(&pair) {
            kept.retain(|(key, _)| *key != pair.0);
            kept.push(pair);
        }
    }
    *pairs = kept;
}

/// The last `count` segments of a path.
fn last_segments(path: &str, count: usize) -> &str {
    path.rmatch_indices('/').nth(count - 1).map_or(path, |(slash, _)| &path[slash + 1..])
}

/// Appends a field's name as upstream spells keys: `replica_set` as `replicaSet`.
fn push_camel_case(out: &mut String, name: &str) {
    for (position, word) in name.split('_').enumerate() {
        let mut characters = word.chars();
        if position > 0
            && let Some(first) = characters.next()
        {
            out.push(first.to_ascii_uppercase());
        }
        out.push_str(characters.as_str());
    }
}
