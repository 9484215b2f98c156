//! The table of upstream's metrics and the content of a scrape, as one type.

use std::collections::{BTreeMap, BTreeSet};

/// Upstream's metrics: `metric type labels buckets stability note`.
const UPSTREAM: &str = include_str!("../../tests/data/metrics.tsv");

/// A family of metrics as a scrape declares and shows it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Family {
    kind: String,
    pub(super) labels: BTreeSet<String>,
    buckets: Vec<String>,
    stability: String,
}

/// Upstream's metrics, by name.
pub(crate) fn table() -> BTreeMap<&'static str, Family> {
    let rows = UPSTREAM.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let split = |column: usize, separator| columns[column].split(separator).filter(|part: &&str| !part.is_empty());
        let family = Family {
            kind: columns[1].to_owned(),
            labels: split(2, ',').map(str::to_owned).collect(),
            buckets: split(3, ' ').map(str::to_owned).collect(),
            stability: columns[4].to_owned(),
        };
        (columns[0], family)
    });
    rows.collect()
}

/// The families of a scrape in the text format, by name.
pub(crate) fn scraped(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in page.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [comment, what, name, rest] = words[..] else {
            read_sample(line, &mut families);
            continue;
        };
        if comment != "#" {
            read_sample(line, &mut families);
            continue;
        }
        let family = families.entry(name.to_owned()).or_default();
        if what == "TYPE" {
            rest.clone_into(&mut family.kind);
        } else {
            let stability = rest.strip_prefix('[').and_then(|help| help.split_once(']'));
            stability.map_or("", |(level, _)| level).clone_into(&mut family.stability);
        }
    }
    families
}

fn read_sample(line: &str, families: &mut BTreeMap<String, Family>) {
    let (series, _) = line.rsplit_once(' ').expect("a sample has a value");
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let bases = ["_bucket", "_sum", "_count"].into_iter().filter_map(|suffix| name.strip_suffix(suffix)).chain([name]);
    let base =
        bases.into_iter().find(|base| families.contains_key(*base)).expect("a type is declared before its samples");
    let family = families.get_mut(base).expect("it was found");
    for (label, value) in labels.split("\",").filter_map(|label| label.split_once("=\"")) {
        let value = value.trim_end_matches(['}', '"']).to_owned();
        if label != "le" {
            family.labels.insert(label.to_owned());
        } else if !family.buckets.contains(&value) {
            family.buckets.push(value);
        }
    }
}
