//! The secrets that a change enqueues.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::informers::Change;
use serde_json::json;

use super::{secret, view};
use crate::serviceaccount_token::event_mapping::{keys_for_account, keys_for_secret};
use crate::shared::ServiceAccount;

fn account(name: &str, uid: &str) -> Arc<ServiceAccount> {
    let account = json!({ "metadata": { "namespace": "shop", "name": name, "uid": uid } });
    Arc::new(ServiceAccount::decode(&account.to_string()).expect("it is an account"))
}

#[test]
fn every_change_of_a_secret_that_names_an_account_enqueues_it() {
    let token = view(&secret("token", "u", &json!({})));
    let nameless = view(&json!({ "metadata": { "namespace": "shop", "name": "token" } }));
    for change in [
        Change::Added(token.clone()),
        Change::Updated { old: nameless.clone(), new: token.clone() },
        Change::Deleted { last: token.clone(), final_state_known: false },
    ] {
        let key = keys_for_secret(&change).expect("it names an account");
        assert_eq!((key.to_string(), key.account().to_string()), ("shop/token".to_owned(), "shop/robot".to_owned()));
    }
    assert!(keys_for_secret(&Change::Added(nameless)).is_none());
}

#[test]
fn an_account_that_is_gone_enqueues_the_secrets_that_name_it() {
    let mut elsewhere = secret("elsewhere", "u", &json!({}));
    elsewhere["metadata"]["annotations"]["kubernetes.io/service-account.name"] = json!("other");
    let secrets = vec![
        view(&secret("of-it", "u", &json!({}))),
        view(&secret("of-a-later-one", "v", &json!({}))),
        view(&secret("without-uid", "", &json!({}))),
        view(&elsewhere),
    ];
    let robot = account("robot", "u");
    let updated = |new| Change::Updated { old: robot.clone(), new };
    for (name, change, expected) in [
        ("added", Change::Added(robot.clone()), vec![]),
        ("changed", updated(robot.clone()), vec![]),
        ("recreated", updated(account("robot", "v")), vec!["of-it", "without-uid"]),
        ("deleted", Change::Deleted { last: robot.clone(), final_state_known: true }, vec!["of-it", "without-uid"]),
    ] {
        let keys = keys_for_account(&change, || secrets.clone());
        assert_eq!(keys.iter().map(|key| key.secret.name()).collect::<Vec<_>>(), expected, "{name}");
    }
}
