//! The tracing layer that filters, renders and writes.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::tz::TimeZone;
use kcm_framework::clock::Clock;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, Scope, SpanRef};

use super::fields::{CONTROLLER, ControllerName, Format, OwnVerbosity, Record};
use super::filter::{Filter, has_verbosity, verbosity_of_site};
use super::line::Line;
use super::streams::Streams;

/// The target of an event with a whole line as its message, like klog's unstructured messages. It is printed without
/// quotes.
pub(crate) const UNSTRUCTURED: &str = "klog";

/// The filter in use; it may change while the process runs.
pub(super) type SharedFilter = Arc<RwLock<Arc<Filter>>>;

/// Filters, renders and writes log lines.
pub(super) struct KlogLayer {
    pub(super) format: Format,
    pub(super) filter: SharedFilter,
    pub(super) streams: Arc<Streams>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) zone: TimeZone,
    pub(super) process: u32,
}

/// The fields of a span, kept with it.
struct SpanFields(Record);

impl KlogLayer {
    fn filter(&self) -> Arc<Filter> {
        Arc::clone(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` if a line is printed within the reconciles of `span` and the spans around it.
    fn prints<'a, S>(&self, site: &Metadata<'_>, own: Option<i32>, span: Option<SpanRef<'a, S>>) -> bool
    where
        S: LookupSpan<'a>,
    {
        let name = |span: SpanRef<'a, S>| span.extensions().get::<ControllerName>().and_then(|name| name.0.clone());
        let controllers: Vec<Box<str>> = span.into_iter().flat_map(|span| span.scope()).filter_map(name).collect();
        self.filter().prints(site, own, controllers.iter().map(AsRef::as_ref))
    }
}

impl<S> Layer<S> for KlogLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn register_callsite(&self, site: &'static Metadata<'static>) -> Interest {
        // A call site that is never or always printed is not asked again until the filter changes.
        match self.filter().always(site) {
            Some(true) => Interest::always(),
            Some(false) => Interest::never(),
            None => Interest::sometimes(),
        }
    }

    fn enabled(&self, site: &Metadata<'_>, context: Context<'_, S>) -> bool {
        match self.filter().always(site) {
            Some(always) => always,
            // Its verbosity is one of its fields, which `event_enabled` gets.
            None => has_verbosity(site) || self.prints(site, None, context.lookup_current()),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter().most_detailed())
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        if !has_verbosity(event.metadata()) {
            return true;
        }
        let mut own = OwnVerbosity::default();
        event.record(&mut own);
        self.prints(event.metadata(), own.0, context.event_span(event))
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut record = Record::new(self.format);
        attributes.record(&mut record);
        let mut extensions = span.extensions_mut();
        if attributes.metadata().fields().field(CONTROLLER).is_some() {
            let mut name = ControllerName::default();
            attributes.record(&mut name);
            extensions.insert(name);
        }
        extensions.insert(SpanFields(record));
    }

    fn on_record(&self, id: &Id, values: &SpanRecord<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(SpanFields(record)) = span.extensions_mut().get_mut() {
            values.record(record);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut record = Record::new(self.format);
        event.record(&mut record);
        let spans: Vec<SpanRef<'_, S>> = context.event_scope(event).into_iter().flat_map(Scope::from_root).collect();
        let extensions: Vec<_> = spans.iter().map(SpanRef::extensions).collect();
        let fields = extensions.iter().filter_map(|extensions| extensions.get::<SpanFields>());
        let (mut logger, mut pairs) = (None, Vec::new());
        for (key, value) in fields.flat_map(|SpanFields(record)| record.pairs.iter()) {
            if key == CONTROLLER {
                logger = Some(value);
            } else {
                pairs.push((key, value));
            }
        }
        pairs.extend(record.pairs.iter());
        let site = event.metadata();
        let line = Line {
            level: *site.level(),
            verbosity: record.verbosity.unwrap_or_else(|| verbosity_of_site(site).max(0)),
            now: self.clock.now(),
            zone: &self.zone,
            process: self.process,
            file: site.file().unwrap_or("???"),
            number: site.line().unwrap_or(1),
            message: record.message.as_deref().unwrap_or_default(),
            is_unstructured: site.target() == UNSTRUCTURED,
            logger,
            error: record.error.as_deref(),
            pairs,
        };
        self.streams.write(*site.level(), &line.render(self.format));
    }
}
