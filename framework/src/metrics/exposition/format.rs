//! The format that a scrape accepts.

/// The format of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.0.
    OpenMetrics,
    /// Messages `io.prometheus.client.MetricFamily`, each after its length.
    Protobuf,
}

impl Format {
    /// Returns the format for a request with that `Accept` header: the first known format of the highest quality, or
    /// text if none is known.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let mut best: Option<(f32, Self)> = None;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let parameter = |name: &str| {
                let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.trim_matches('"'))
            };
            let quality = parameter("q").map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            let Some(format) = Self::named(media_type, parameter) else { continue };
            if quality > 0.0 && best.is_none_or(|(known, _)| quality > known) {
                best = Some((quality, format));
            }
        }
        best.map_or(Self::Text, |(_, format)| format)
    }

    fn named<'a>(media_type: &str, parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        match media_type {
            "application/vnd.google.protobuf" => {
                let is_family = parameter("proto") == Some("io.prometheus.client.MetricFamily");
                (is_family && parameter("encoding") == Some("delimited")).then_some(Self::Protobuf)
            }
            "application/openmetrics-text" => {
                matches!(parameter("version"), None | Some("0.0.1" | "1.0.0")).then_some(Self::OpenMetrics)
            }
            "text/plain" => matches!(parameter("version"), None | Some("0.0.4")).then_some(Self::Text),
            "text/*" | "*/*" => Some(Self::Text),
            _other => None,
        }
    }

    /// The `Content-Type` of a response.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_format_is_taken() {
        const PROTOBUF: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily";
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("application/json", Format::Text),
            ("application/openmetrics-text; version=1.0.0", Format::OpenMetrics),
            ("application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4;q=0.1", Format::Text),
            (&format!("{PROTOBUF};encoding=delimited;q=0.6,text/plain;q=0.5"), Format::Protobuf),
            (&format!("{PROTOBUF};encoding=text;q=0.6,text/plain;q=0.5"), Format::Text),
            (&format!("text/plain;q=0.3,{PROTOBUF};encoding=delimited;q=0.2"), Format::Text),
            ("application/openmetrics-text;q=0, text/plain;q=0.1", Format::Text),
            // As Prometheus 3 asks by default.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
