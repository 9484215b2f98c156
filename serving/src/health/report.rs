//! Prints the results of checks. Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::check::Check;
use crate::cut::{MOST_REPEATED, cut};

/// The query of a request for health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// Whether each check is listed though all are well.
    pub(crate) verbose: bool,
    /// The checks that do not count.
    pub(crate) exclude: BTreeSet<String>,
}

impl Query {
    /// Reads a query string.
    pub(crate) fn of(query: Option<&str>) -> Self {
        let mut read = Self::default();
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*key {
                "verbose" => read.verbose = true,
                "exclude" => drop(read.exclude.insert(value.into_owned())),
                _other => {}
            }
        }
        read
    }
}

/// The response to a request for health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// Text of the response.
    pub(crate) body: String,
    /// The checks that failed, with their reasons, which are for the log.
    pub(crate) failed: Vec<(&'static str, String)>,
}

/// Runs the checks of the path `/ENDPOINT`.
pub(crate) fn report(endpoint: &str, checks: &[Check], query: &Query) -> Report {
    let mut unknown = query.exclude.clone();
    let mut lines = String::new();
    let mut failed = Vec::new();
    for check in checks {
        let name = check.name();
        // Writing to a string does not fail.
        let _written = if unknown.remove(name) || query.exclude.contains(name) {
            writeln!(lines, "[+]{name} excluded: ok")
        } else if let Err(reason) = check.run() {
            failed.push((name, reason));
            // The path is open to all; the path of the check, which is not, has the reason.
            writeln!(lines, "[-]{name} failed: reason withheld")
        } else {
            writeln!(lines, "[+]{name} ok")
        };
    }
    if !unknown.is_empty() {
        let names = names(&unknown);
        let _written = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
    }
    let body = if !failed.is_empty() {
        format!("{lines}{endpoint} check failed\n")
    } else if query.verbose {
        format!("{lines}{endpoint} check passed\n")
    } else {
        "ok".to_owned()
    };
    Report { body, failed }
}

/// Names of a request in quotes, as many as a response may repeat.
fn names(all: &BTreeSet<String>) -> String {
    let mut left = MOST_REPEATED;
    let mut names = Vec::new();
    for name in all {
        let shown = cut(name, left);
        names.push(format!("{shown:?}"));
        // An empty name takes room too.
        left = left.saturating_sub(shown.len().max(1));
        if left == 0 || shown.len() < name.len() {
            names.push("...".to_owned());
            break;
        }
    }
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        vec![
            Check::new("leaderElection", || Ok(())),
            Check::new("job-controller", || Err("its queue is stuck".to_owned())),
            Check::new("deployment-controller", || Ok(())),
        ]
    }

    #[test]
    fn results_are_printed_as_upstream_prints_them() {
        let cases: [(Option<&str>, &str, &[&str]); 6] = [
            (
                None,
                "[+]leaderElection ok\n[-]job-controller failed: reason withheld\n[+]deployment-controller ok\n\
                 healthz check failed\n",
                &["job-controller"],
            ),
            (Some("exclude=job-controller"), "ok", &[]),
            (
                Some("verbose&exclude=job-controller"),
                "[+]leaderElection ok\n[+]job-controller excluded: ok\n[+]deployment-controller ok\n\
                 healthz check passed\n",
                &[],
            ),
            (
                Some("verbose=false&exclude=job-controller&exclude=zz&exclude=no%22ne"),
                "[+]leaderElection ok\n[+]job-controller excluded: ok\n[+]deployment-controller ok\n\
                 warn: some health checks cannot be excluded: no matches for \"no\\\"ne\",\"zz\"\n\
                 healthz check passed\n",
                &[],
            ),
            (Some("exclude=job-controller&exclude=none"), "ok", &[]),
            (
                Some("exclude=leaderElection"),
                "[+]leaderElection excluded: ok\n[-]job-controller failed: reason withheld\n\
                 [+]deployment-controller ok\nhealthz check failed\n",
                &["job-controller"],
            ),
        ];
        for (query, body, failed) in cases {
            let report = report("healthz", &checks(), &Query::of(query));
            let names: Vec<&str> = report.failed.iter().map(|(name, _)| *name).collect();
            assert_eq!((report.body.as_str(), &names[..]), (body, failed), "{query:?}");
        }
    }

    #[test]
    fn unknown_names_are_repeated_up_to_a_bound() {
        let one = format!("verbose&exclude={}", "%01".repeat(10_000));
        let many: Vec<String> = (0..5000).map(|number| format!("exclude={number}&")).collect();
        let many = many.concat();
        for query in [one, format!("verbose&{many}")] {
            let body = report("healthz", &[], &Query::of(Some(&query))).body;
            let (before, after) = (body.contains("no matches for \""), body.contains(",...\n"));
            assert!(before && after && body.len() < 2000, "{} bytes", body.len());
        }
    }
}
