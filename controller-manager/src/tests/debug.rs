//! The debug endpoints return the fields that `docs/debug.md` states.

use std::collections::BTreeSet;

use kcm_serving::debug;
use serde_json::Value;

use super::{running, web};

const PAGE: &str = include_str!("../../../docs/debug.md");

/// Returns the names in backticks in the rows of a section: the names in the first column, and all.
fn documented(section: &str) -> (BTreeSet<&'static str>, BTreeSet<&'static str>) {
    let heading = format!("### `{section}`\n");
    let rest = PAGE.split_once(&heading).unwrap_or_else(|| panic!("the page has no section {section}")).1;
    let rows = rest.lines().take_while(|line| !line.starts_with("##")).filter(|line| line.starts_with("| `"));
    let (mut first, mut all) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let column = row.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
        first.extend(column.split('`').skip(1).step_by(2));
        all.extend(row.split('`').skip(1).step_by(2));
    }
    (first, all)
}

/// The names of the fields of all objects beneath a value.
fn fields(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.insert(name.clone());
                fields(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn every_field_is_stated_and_every_stated_field_is_there() {
    let manager = running().await;
    let key = debug::key(&manager.handle, "deployment-controller", &web()).expect("there is such a controller");
    for (section, list, value) in [
        ("/debug/queues", "queues", debug::queues(&manager.handle)),
        ("/debug/caches", "caches", debug::caches(&manager.handle)),
        ("/debug/controllers", "controllers", debug::controllers(&manager.handle)),
        ("/debug/controllers/NAME/keys/NAMESPACE/NAME", "keys", key),
    ] {
        let items = value[list].as_array().unwrap_or_else(|| panic!("{section} has no list {list}: {value}"));
        assert!(!items.is_empty(), "{section} is empty");
        let mut found = BTreeSet::new();
        for item in items {
            fields(item, &mut found);
        }
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        let (first, all) = documented(section);
        assert_eq!(found.difference(&all).collect::<Vec<_>>(), Vec::<&&str>::new(), "{section}: not stated");
        assert_eq!(first.difference(&found).collect::<Vec<_>>(), Vec::<&&str>::new(), "{section}: not there");
    }
    assert!(debug::key(&manager.handle, "no-controller", &web()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_explained_in_the_words_of_its_controller() {
    let manager = running().await;
    let explained = manager.handle.explain("deployment-controller", &web()).expect("there is such a controller");
    let lines: Vec<String> = explained.iter().map(ToString::to_string).collect();
    for part in [
        "deployments.apps default/web, deployment-controller, loop deployment\n",
        "    decided  rolls out by the strategy RollingUpdate (3 wanted, 0 exist, 0 of the new template, 0 available): \
         creates replica set web-",
        "    wrote    create replicasets.apps default/web-",
        "    event    ScalingReplicaSet: Scaled up replica set web-",
        "    because  replicasets.apps default/web-",
        "    because  it was added\n",
    ] {
        assert!(lines.iter().any(|lines| lines.contains(part)), "{part:?} is not in\n{}", lines.join("\n"));
    }
}
