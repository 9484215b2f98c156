//! The settings of logs.

use std::time::Duration;

use kcm_config::{Effective, FromValue, Gate, GateStage, Origin};

use super::fields::Format;
use super::filter::Filter;

/// Whether the alpha options of logs may be used: streams apart, and buffers.
const ALPHA_OPTIONS: Gate =
    Gate { name: "LoggingAlphaOptions", default: false, stage: GateStage::Alpha, locked: false };
/// Whether the beta options may be used: JSON.
const BETA_OPTIONS: Gate = Gate { name: "LoggingBetaOptions", default: true, stage: GateStage::Beta, locked: false };

/// The largest buffer, as upstream's.
const LARGEST_BUFFER: u64 = 2 << 30;

/// What the settings say about logs.
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
        let flush_frequency = reader.get("log-flush-frequency").unwrap_or(Duration::from_secs(5));
        if flush_frequency.is_zero() {
            reader.refuse("log-flush-frequency", "must be greater than zero");
        }
        if reader.reasons.is_empty() {
            Ok(Self { format, filter, split, flush_frequency })
        } else {
            Err(reader.reasons)
        }
    }

    /// The same for warnings and errors only, where the terminal belongs to something else.
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
                if !self.settings.enabled(&BETA_OPTIONS) {
                    self.refuse_gate("logging-format", BETA_OPTIONS.name);
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
        let filter = Filter::new(self.get("v").unwrap_or_default());
        let modules = self.text("vmodule");
        if !modules.is_empty() && format == Format::Json {
            self.refuse("vmodule", "works in text only: give --logging-format=text, or leave it out");
        }
        match filter.clone().modules(&modules) {
            Ok(filter) => filter,
            Err(reason) => {
                self.refuse("vmodule", &reason);
                filter
            }
        }
    }

    fn split(&mut self, format: Format) -> Option<usize> {
        let mut split = None;
        for (of, split_flag, size_flag) in [
            (Format::Text, "log-text-split-stream", "log-text-info-buffer-size"),
            (Format::Json, "log-json-split-stream", "log-json-info-buffer-size"),
        ] {
            let is_split = self.get(split_flag).unwrap_or(false);
            let size = self.size(size_flag);
            let may = self.settings.enabled(&ALPHA_OPTIONS);
            if is_split && !may {
                self.refuse_gate(split_flag, ALPHA_OPTIONS.name);
            }
            if size > 0 && !may {
                self.refuse_gate(size_flag, ALPHA_OPTIONS.name);
            }
            if is_split && of == format {
                split = Some(usize::try_from(size.min(LARGEST_BUFFER)).unwrap_or(usize::MAX));
            }
        }
        split
    }

    fn size(&mut self, flag: &str) -> u64 {
        let text = self.text(flag);
        let size = bytes(&text);
        if size.is_none() {
            self.refuse(flag, "must be a number of bytes, such as 512, 1K or 2Ki");
        }
        size.unwrap_or(0)
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
        self.reasons.push(format!("{origin}: --{flag} is {given:?}: the value {reason}"));
    }

    fn refuse_gate(&mut self, flag: &str, gate: &str) {
        let origin = self.settings.origin(flag).unwrap_or(&Origin::Default);
        self.reasons
            .push(format!("{origin}: --{flag} needs the feature gate {gate}: give --feature-gates={gate}=true"));
    }
}

/// A number of bytes as Kubernetes writes quantities: `512`, multiples of 1000 (`1K`) or of 1024 (`2Ki`), and powers of
/// those.
fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1000),
        ("K", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
    ];
    let (digits, unit) =
        UNITS.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit))).unwrap_or((text, 1));
    match digits {
        "" if text.is_empty() => Some(0),
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse::<u64>().ok()?.checked_mul(unit),
        _other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_quantities() {
        let cases = [
            ("", Some(0)),
            ("0", Some(0)),
            ("512", Some(512)),
            ("1K", Some(1000)),
            ("1k", Some(1000)),
            ("2Ki", Some(2048)),
            ("6Gi", Some(6 << 30)),
            ("-1", None),
            ("K", None),
            ("1.5x", None),
            ("99999999999999999999", None),
            ("99999999999999999Gi", None),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
