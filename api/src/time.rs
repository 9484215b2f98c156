//! Times as the API writes them.

use jiff::Timestamp;

/// Formats a time as `2006-01-02T15:04:05Z`, the form in metadata and conditions. Fractions of a second are cut off.
///
/// # Upstream
/// `metav1.Time`.
#[must_use]
pub fn format_seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// Formats a time as `2006-01-02T15:04:05.000000Z`, the form in events and leases. It always has six digits; smaller
/// fractions are cut off.
///
/// # Upstream
/// `metav1.MicroTime`.
#[must_use]
pub fn format_micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// `#[serde(with = "…")]` for an optional time in whole seconds; `None` is `null`.
pub mod optional_seconds {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the time in whole seconds.
    pub fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&super::format_seconds(*time)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads any RFC 3339 time, or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        Option::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_writes_them() {
        for (time, seconds, micros) in [
            ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000000Z"),
            ("2024-02-29T23:59:59.999999999Z", "2024-02-29T23:59:59Z", "2024-02-29T23:59:59.999999Z"),
            ("2024-03-01T01:00:00.1+02:00", "2024-02-29T23:00:00Z", "2024-02-29T23:00:00.100000Z"),
        ] {
            let time: Timestamp = time.parse().unwrap();
            assert_eq!(format_seconds(time), seconds);
            assert_eq!(format_micros(time), micros);
        }
    }
}
