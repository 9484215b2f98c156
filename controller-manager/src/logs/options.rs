//! The settings of logs.

use std::time::Duration;

use kcm_config::gates::{LOGGING_ALPHA_OPTIONS, LOGGING_BETA_OPTIONS};
use kcm_config::{Effective, FromValue, GoDuration, ModuleLevel, Origin};
use kcm_framework::api::Quantity;

use super::fields::Format;
use super::filter::Filter;

/// Interval at which buffers are written unless a setting says otherwise.
const FLUSH_FREQUENCY: GoDuration = GoDuration::from_secs(5);

/// The largest buffer, as upstream's.
const LARGEST_BUFFER: u64 = 2 << 30;

/// Settings of the logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogOptions {
    pub(super) format: Format,
    pub(crate) filter: Filter,
    /// With streams apart, the size of the buffer of information.
    pub(super) split: Option<usize>,
    pub(super) flush_frequency: Duration,
}

impl LogOptions {
    /// Reads and checks the settings of logs; a host without one of them has its default.
    ///
    /// # Errors
    /// Every reason why the settings do not go together.
    pub(crate) fn of(settings: &Effective) -> Result<Self, Vec<String>> {
        let mut reader = Reader { settings, reasons: Vec::new() };
        let format = reader.format();
        let filter = reader.filter(format);
        let split = reader.split(format);
        let flush_frequency = reader.get("log-flush-frequency").unwrap_or(FLUSH_FREQUENCY);
        if flush_frequency <= GoDuration::ZERO {
            reader.refuse("log-flush-frequency", "must be greater than zero");
        }
        if reader.reasons.is_empty() {
            Ok(Self { format, filter, split, flush_frequency: flush_frequency.unsigned() })
        } else {
            Err(reader.reasons)
        }
    }

    /// Returns the same options for warnings and errors only, for a terminal that shows something else.
    pub(crate) fn only_warnings(self) -> Self {
        Self { filter: Filter::warnings(), ..self }
    }
}

struct Reader<'a> {
    settings: &'a Effective,
    reasons: Vec<String>,
}

impl Reader<'_> {
    fn format(&mut self) -> Format {
        match self.text("logging-format").as_str() {
            "text" | "" => Format::Text,
            "json" => {
                if !self.settings.enabled(&LOGGING_BETA_OPTIONS) {
                    self.refuse_gate("logging-format", LOGGING_BETA_OPTIONS.name);
                }
                Format::Json
            }
            _other => {
                self.refuse("logging-format", "must be text or json");
                Format::Text
            }
        }
    }

    fn filter(&mut self, format: Format) -> Filter {
        let modules: Vec<ModuleLevel> = self.get("vmodule").unwrap_or_default();
        if !modules.is_empty() && format == Format::Json {
            self.refuse("vmodule", "works in text only: give --logging-format=text, or leave it out");
        }
        Filter::new(self.get("v").unwrap_or_default()).modules(modules)
    }

    fn split(&mut self, format: Format) -> Option<usize> {
        let mut split = None;
        for (of, split_flag, size_flag) in [
            (Format::Text, "log-text-split-stream", "log-text-info-buffer-size"),
            (Format::Json, "log-json-split-stream", "log-json-info-buffer-size"),
        ] {
            let is_split = self.get(split_flag).unwrap_or(false);
            let size = self.get(size_flag).map_or(0, |size: Quantity| u64::try_from(size.value()).unwrap_or(0));
            let may = self.settings.enabled(&LOGGING_ALPHA_OPTIONS);
            if is_split && !may {
                self.refuse_gate(split_flag, LOGGING_ALPHA_OPTIONS.name);
            }
            if size > 0 && !may {
                self.refuse_gate(size_flag, LOGGING_ALPHA_OPTIONS.name);
            }
            if is_split && of == format {
                split = Some(usize::try_from(size.min(LARGEST_BUFFER)).unwrap_or(usize::MAX));
            }
        }
        split
    }

    fn get<T: FromValue>(&self, flag: &str) -> Option<T> {
        self.settings.get(flag).ok()
    }

    fn text(&self, flag: &str) -> String {
        self.settings.value(flag).map(ToString::to_string).unwrap_or_default()
    }

    fn refuse(&mut self, flag: &str, reason: &str) {
        let given = self.text(flag);
        let origin = self.settings.origin(flag).unwrap_or(&Origin::Default);
        self.reasons.push(format!("{origin}: {given} {reason}"));
    }

    fn refuse_gate(&mut self, flag: &str, gate: &str) {
        self.refuse(flag, &format!("needs the feature gate {gate}: give --feature-gates={gate}=true"));
    }
}

#[cfg(test)]
mod tests {
    use kcm_config::{Initial, Loaded, Row, Sources, Table, gates};

    use super::*;

    const ROWS: [Row; 9] = [
        Row::new("feature-gates", "Generic", Initial::FeatureGates),
        Row::new("log-flush-frequency", "Logs", Initial::Duration(GoDuration::from_secs(5))),
        Row::new("log-json-info-buffer-size", "Logs", Initial::Quantity("0")),
        Row::new("log-json-split-stream", "Logs", Initial::Bool(false)),
        Row::new("log-text-info-buffer-size", "Logs", Initial::Quantity("0")),
        Row::new("log-text-split-stream", "Logs", Initial::Bool(false)),
        Row::new("logging-format", "Logs", Initial::String("text")),
        Row::new("v", "Logs", Initial::Level(0)).short('v'),
        Row::new("vmodule", "Logs", Initial::ModuleLevels),
    ];

    fn options(arguments: &[&str]) -> Result<LogOptions, Vec<String>> {
        let own = [LOGGING_ALPHA_OPTIONS, LOGGING_BETA_OPTIONS].into_iter();
        let known = own.filter(|own| gates::KNOWN.iter().all(|gate| gate.name != own.name));
        let table =
            Table::with_gates(ROWS.map(|row| row.help("A setting.")), gates::KNOWN.iter().copied().chain(known))
                .expect("the rows make a table");
        match table.load(&Sources::default().arguments(arguments.iter().copied())) {
            Ok(Loaded::Settings(settings)) => LogOptions::of(&settings),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn settings_say_what_is_written_where() {
        let default = LogOptions {
            format: Format::Text,
            filter: Filter::new(0),
            split: None,
            flush_frequency: FLUSH_FREQUENCY.unsigned(),
        };
        assert_eq!(options(&[]), Ok(default.clone()));
        assert_eq!(options(&["-v=4"]), Ok(LogOptions { filter: Filter::new(4), ..default.clone() }));
        assert_eq!(options(&["--logging-format=json"]), Ok(LogOptions { format: Format::Json, ..default.clone() }));
        let alpha = "--feature-gates=LoggingAlphaOptions=true";
        let split = |more: &[&str]| options(&[&[alpha, "--log-text-split-stream"], more].concat());
        assert_eq!(split(&[]), Ok(LogOptions { split: Some(0), ..default.clone() }));
        let size = "--log-text-info-buffer-size=2Ki";
        assert_eq!(split(&[size]), Ok(LogOptions { split: Some(2048), ..default.clone() }));
        assert_eq!(split(&[size, "--logging-format=json"]), Ok(LogOptions { format: Format::Json, ..default }));
    }

    #[test]
    fn all_that_does_not_go_together_is_refused_at_once() {
        let reasons = options(&[
            "--logging-format=json",
            "--vmodule=worker=4",
            "--log-json-split-stream",
            "--log-text-info-buffer-size=1k",
            "--log-flush-frequency=0s",
            "--feature-gates=LoggingBetaOptions=false",
        ]);
        assert_eq!(
            reasons.expect_err("nothing goes together"),
            [
                "--logging-format: json needs the feature gate LoggingBetaOptions: \
                 give --feature-gates=LoggingBetaOptions=true",
                "--vmodule: worker=4 works in text only: give --logging-format=text, or leave it out",
                "--log-text-info-buffer-size: 1k needs the feature gate LoggingAlphaOptions: \
                 give --feature-gates=LoggingAlphaOptions=true",
                "--log-json-split-stream: true needs the feature gate LoggingAlphaOptions: \
                 give --feature-gates=LoggingAlphaOptions=true",
                "--log-flush-frequency: 0s must be greater than zero",
            ]
        );
        let reasons = options(&["--logging-format=xml"]).expect_err("there is no such format");
        assert_eq!(reasons, ["--logging-format: xml must be text or json"]);
    }
}
