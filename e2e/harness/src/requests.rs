//! How many requests the API server answered, from its own metrics.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::Client;
use serde::Serialize;

/// The verb and the resource of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Kind {
    /// The verb as the metric has it, as in `POST` or `WATCH`.
    pub verb: String,
    /// The resource, with its subresource behind a slash.
    pub resource: String,
}

/// Requests by kind, since the API server started or between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    by_kind: BTreeMap<Kind, u64>,
    changes: u64,
}

impl Requests {
    /// Reads the API server's metrics.
    ///
    /// # Errors
    ///
    /// If they cannot be had.
    pub async fn read(client: &Client) -> Result<Self> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = client.request_text(request).await.context("cannot read the API server's metrics")?;
        Ok(Self::parse(&text))
    }

    /// What came since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let earlier_of = |kind| earlier.by_kind.get(kind).copied().unwrap_or(0);
        let counts = self.by_kind.iter().map(|(kind, count)| (kind.clone(), count.saturating_sub(earlier_of(kind))));
        Self {
            by_kind: counts.filter(|(_, count)| *count > 0).collect(),
            changes: self.changes.saturating_sub(earlier.changes),
        }
    }

    /// Requests with this verb on this resource.
    pub fn of(&self, verb: &str, resource: &str) -> u64 {
        let kind = Kind { verb: verb.to_owned(), resource: resource.to_owned() };
        self.by_kind.get(&kind).copied().unwrap_or(0)
    }

    /// Writes that were accepted to objects that controllers watch: each becomes an event of their watches.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Every kind and its count.
    pub fn iter(&self) -> impl Iterator<Item = (&Kind, u64)> {
        self.by_kind.iter().map(|(kind, count)| (kind, *count))
    }

    fn parse(text: &str) -> Self {
        const WATCHED: [&str; 3] = ["pods", "replicasets", "deployments"];
        const WRITES: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
        let mut requests = Self::default();
        for line in text.lines() {
            let Some(sample) = line.strip_prefix("apiserver_request_total{") else { continue };
            let Some((labels, value)) = sample.rsplit_once("} ") else { continue };
            let (Some(verb), Some(resource)) = (label(labels, "verb"), label(labels, "resource")) else { continue };
            // Counters are printed as floating point, as in `1.2e+06`.
            let Some(count) = value.trim().parse::<f64>().ok().and_then(whole) else { continue };
            let is_accepted = label(labels, "code").is_some_and(|code| code.starts_with('2'));
            if is_accepted && WATCHED.contains(&resource) && WRITES.contains(&verb) {
                requests.changes += count;
            }
            let resource = match label(labels, "subresource") {
                Some(part) if !part.is_empty() => format!("{resource}/{part}"),
                _ => resource.to_owned(),
            };
            *requests.by_kind.entry(Kind { verb: verb.to_owned(), resource }).or_insert(0) += count;
        }
        requests
    }
}

/// The value of a label. None of those that are read holds a comma or a quote.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.split(',').find_map(|label| {
        let (key, value) = label.split_once('=')?;
        (key == name).then(|| value.trim_matches('"'))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of requests is positive and far below 2^53"
)]
fn whole(value: f64) -> Option<u64> {
    (value.is_finite() && value >= 0.0).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::Requests;

    const EARLIER: &str = r#"# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 10
"#;

    const LATER: &str = r#"apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1.25e+03
apiserver_request_total{code="403",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="replicasets",scope="resource",subresource="status",verb="PUT",version="v1"} 7
apiserver_request_total{code="0",group="apps",resource="replicasets",verb="WATCH"} NaN
apiserver_request_duration_seconds_count{resource="pods",verb="POST"} 99
"#;

    #[test]
    fn codes_are_summed_and_subresources_are_counted_apart() {
        let later = Requests::parse(LATER);
        assert_eq!(later.of("POST", "pods"), 1252);
        assert_eq!(later.of("PUT", "replicasets/status"), 7);
        assert_eq!(later.of("WATCH", "replicasets"), 0);
        assert_eq!(later.iter().count(), 2);
    }

    #[test]
    fn requests_between_two_readings_are_counted_and_their_changes_too() {
        let since = Requests::parse(LATER).since(&Requests::parse(EARLIER));
        assert_eq!(since.of("POST", "pods"), 1242);
        assert_eq!(since.changes(), 1247, "what was refused is no change");
    }
}
