//! The fields of events and spans, rendered for one format.

use std::error::Error;
use std::fmt::{Debug, Display, Write as _};

use kcm_framework::error_chain;
use tracing::field::{Field, Visit};

use super::filter::VERBOSITY;
use super::quote::quote;

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// The text format of klog.
    #[default]
    Text,
    /// A JSON object for each line.
    Json,
}

/// Keys and rendered values, in order.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    rendered: String,
    ends: Vec<(&'static str, usize)>,
}

impl Pairs {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        self.ends.iter().zip(starts).map(|((key, end), start)| (*key, &self.rendered[start..*end]))
    }

    fn end(&mut self, key: &'static str) {
        self.ends.push((key, self.rendered.len()));
    }
}

/// Fields of an event or a span.
#[derive(Debug)]
pub(super) struct Record {
    format: Format,
    /// The message, unchanged; `None` in a span.
    pub(super) message: Option<String>,
    /// The field `error`, rendered: the whole chain of causes.
    pub(super) error: Option<String>,
    /// The field `v`: the verbosity that an event asks for.
    pub(super) verbosity: Option<i32>,
    /// All fields but these three.
    pub(super) pairs: Pairs,
}

impl Record {
    pub(super) fn new(format: Format) -> Self {
        Self { format, message: None, error: None, verbosity: None, pairs: Pairs::default() }
    }

    fn text(&mut self, field: &Field, text: &str) {
        match field.name() {
            // A second field of this name is a field like others.
            "message" if self.message.is_none() => self.message = Some(text.to_owned()),
            "error" => {
                let mut rendered = String::new();
                render(self.format, &mut rendered, text);
                self.error = Some(rendered);
            }
            key => {
                render(self.format, &mut self.pairs.rendered, text);
                self.pairs.end(key);
            }
        }
    }

    fn bare(&mut self, field: &Field, value: impl Display) {
        write!(self.pairs.rendered, "{value}").expect("a string takes everything");
        self.pairs.end(field.name());
    }

    fn whole(&mut self, field: &Field, value: impl Display + TryInto<i32>) {
        if field.name() == VERBOSITY {
            self.verbosity = value.try_into().ok();
        } else {
            self.bare(field, value);
        }
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.text(field, &error_chain(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.bare(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.whole(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.whole(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.bare(field, value);
        } else {
            self.text(field, &value.to_string());
        }
    }
}

fn render(format: Format, out: &mut String, text: &str) {
    match format {
        Format::Json => json_string(out, text),
        Format::Text if text.contains('\n') => block(out, text),
        Format::Text => quote(out, text),
    }
}

/// Appends a JSON string.
pub(super) fn json_string(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Appends a value of several lines in klog's form: each line is indented with a tab, and no line can look like the
/// end.
fn block(out: &mut String, text: &str) {
    out.push_str("<\n");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\t');
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(" >");
}

/// Reads the verbosity that an event asks for, and renders nothing.
#[derive(Debug, Default)]
pub(super) struct OwnVerbosity(pub(super) Option<i32>);

impl Visit for OwnVerbosity {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == VERBOSITY {
            self.0 = value.try_into().ok();
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == VERBOSITY {
            self.0 = value.try_into().ok();
        }
    }
}

/// Reads the name of the controller from the fields of a span.
#[derive(Debug, Default)]
pub(super) struct ControllerName(pub(super) Option<Box<str>>);

/// The field of a span that names the controller. In a line it is the logger, as upstream's loggers have that name.
pub(super) const CONTROLLER: &str = "controller";

impl Visit for ControllerName {
    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == CONTROLLER {
            self.0 = Some(value.into());
        }
    }
}
