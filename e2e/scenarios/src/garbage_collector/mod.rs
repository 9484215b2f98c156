//! Garbage collection: kinds that come and go, random changes, and the table of API scenarios. A script compares the rest.

mod churn;
mod maps;
mod table;

use anyhow::Result;
use kcm_e2e_harness::scenario::{Case, Setup};
use serde_json::json;

use self::maps::Maps;
use super::alone::Alone;

kcm_e2e_harness::scenarios! {
    Setup::of("garbagecollector").with_own_managers() => {
        "garbage-collector/collects_kinds_that_come_and_go": collects_kinds_that_come_and_go,
        "garbage-collector/keeps_what_has_a_living_owner": churn::keeps_what_has_a_living_owner,
    }
    Setup::of("garbagecollector,namespace").with_own_managers() => {
        "garbage-collector/table": table::holds,
    }
}

/// Objects of a kind that is defined while the manager runs own others and are owned; they go with their definition.
async fn collects_kinds_that_come_and_go(case: Case) -> Result<()> {
    let alone = Alone::start(&case).await?;
    let kubectl = alone.kubectl("default");
    alone.define_widgets().await?;
    let widget = |name: &str| json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name, "namespace": "default" } });
    for round in ["first", "second"] {
        alone.apply("default", &widget(round)).await?;
        let uid = kubectl.run(&format!("get widget {round} -o jsonpath={{.metadata.uid}}")).await?;
        let owned = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": format!("of-{round}"), "namespace": "default",
            "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Widget", "name": round, "uid": uid.trim() }],
        } });
        alone.apply("default", &owned).await?;
    }
    let maps = Maps::of(&alone, "default");
    kubectl.run("delete widget first").await?;
    maps.are(&["of-second"]).await?;
    kubectl.run("delete crd widgets.example.com").await?;
    maps.are(&[]).await
}
