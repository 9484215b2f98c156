//! The settings of metrics.

use std::collections::BTreeMap;
use std::fs;

use kcm_config::{Effective, string_map};
use kcm_framework::{ExpositionOptions, error_chain};

/// The flag of the manifest of allowed label values.
const MANIFEST: &str = "allow-metric-labels-manifest";

/// The key of the map in the manifest.
const MAPPING: &str = "allowListMapping";

/// Reads the options for the output of a scrape.
///
/// # Errors
/// The reason why the manifest of allowed label values cannot be used.
pub(crate) fn exposition_options(settings: &Effective) -> Result<ExpositionOptions, String> {
    let disabled: Vec<String> = settings.get("disabled-metrics").unwrap_or_default();
    let hidden_since: String = settings.get("show-hidden-metrics-for-version").unwrap_or_default();
    let mut allowed: BTreeMap<String, String> = settings.get("allow-metric-labels").unwrap_or_default();
    let manifest: String = settings.get(MANIFEST).unwrap_or_default();
    let refused = |error: &dyn std::error::Error| {
        let reason = error_chain(error);
        format!(
            "--{MANIFEST} is {manifest:?}: {reason}: give a readable YAML file whose {MAPPING} maps METRIC,LABEL to values"
        )
    };
    if !manifest.is_empty() {
        let bytes = fs::read(&manifest).map_err(|error| refused(&error))?;
        allowed.extend(string_map(&bytes, MAPPING).map_err(|error| refused(&error))?);
    }
    let options = ExpositionOptions::default().disabled(disabled).show_hidden(!hidden_since.is_empty());
    options.allow(allowed).map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests {
    use kcm_config::{Loaded, Sources, Table, generic};

    use super::*;

    fn options(arguments: &[&str]) -> Result<ExpositionOptions, String> {
        let table = Table::new(generic::rows()).expect("the rows make a table");
        match table.load(&Sources::default().arguments(arguments.iter().copied())) {
            Ok(Loaded::Settings(settings)) => exposition_options(&settings),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_manifest_says_what_the_flag_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("labels.yaml");
        fs::write(&file, "allowListMapping:\n  workqueue_adds_total,name: deployment,replicaset\n").expect("a file");
        let by_manifest = options(&[&format!("--{MANIFEST}={}", file.display())]);
        let by_flag = options(&["--allow-metric-labels=workqueue_adds_total,name='deployment,replicaset'"]);
        let expected = ExpositionOptions::default()
            .allow([("workqueue_adds_total,name".to_owned(), "deployment,replicaset".to_owned())])
            .expect("it names a metric and a label");
        assert_eq!(by_manifest, Ok(expected));
        assert!(by_flag.is_ok());
        let all = options(&["--disabled-metrics=a,b", "--show-hidden-metrics-for-version=1.35"]);
        let expected = ExpositionOptions::default().disabled(["a", "b"].map(str::to_owned)).show_hidden(true);
        assert_eq!(all, Ok(expected));
    }

    #[test]
    fn a_manifest_that_cannot_be_used_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("labels.yaml");
        for (text, reason) in
            [("a: b", "it has no \"allowListMapping\""), ("allowListMapping: {a: b}", "\"a\" is not METRIC,LABEL")]
        {
            fs::write(&file, text).expect("a file");
            let error = options(&[&format!("--{MANIFEST}={}", file.display())]).expect_err(text);
            assert!(error.contains(reason), "{error}");
        }
        let error = options(&[&format!("--{MANIFEST}=/none.yaml")]).expect_err("there is no such file");
        assert!(error.starts_with("--allow-metric-labels-manifest is \"/none.yaml\": "), "{error}");
    }
}
