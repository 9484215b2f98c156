//! What a secret lacks.

use serde_json::json;

use super::{secret, view};
use crate::serviceaccount_token::plan::{Missing, RootCa, plan};

const NOTHING: Missing = Missing { ca: false, namespace: false, token: false };

#[test]
fn what_a_secret_has_stays_but_for_another_root_ca() {
    let (ca, none) = (RootCa::new("CA"), RootCa::default());
    let full = json!({ "ca.crt": "Q0E=", "namespace": "c2hvcA==", "token": "dA==" });
    let without = |key: &str| {
        let mut data = full.clone();
        data.as_object_mut().expect("it is an object").remove(key);
        data
    };
    let with = |key: &str, value: &str| {
        let mut data = full.clone();
        data[key] = json!(value);
        data
    };
    let everything = Missing { ca: true, namespace: true, token: true };
    for (name, data, root_ca, expected) in [
        ("a full one", full.clone(), &ca, None),
        ("a new one", json!(null), &ca, Some(everything)),
        ("a new one without a root CA", json!({}), &none, Some(Missing { ca: false, ..everything })),
        ("without a token", without("token"), &ca, Some(Missing { token: true, ..NOTHING })),
        ("with an empty token", with("token", ""), &ca, Some(Missing { token: true, ..NOTHING })),
        (
            "with a null token",
            json!({ "ca.crt": "Q0E=", "namespace": "eA==", "token": null }),
            &ca,
            Some(Missing { token: true, ..NOTHING }),
        ),
        ("with any token", with("token", "b3RoZXI="), &ca, None),
        ("without a CA", without("ca.crt"), &ca, Some(Missing { ca: true, ..NOTHING })),
        ("with another CA", with("ca.crt", "b3RoZXI="), &ca, Some(Missing { ca: true, ..NOTHING })),
        ("with another CA, and none to be written", with("ca.crt", "b3RoZXI="), &none, None),
        ("without a namespace", without("namespace"), &ca, Some(Missing { namespace: true, ..NOTHING })),
        ("with another namespace", with("namespace", "b3RoZXI="), &ca, None),
        ("with further data", with("more", "YQ=="), &ca, None),
    ] {
        assert_eq!(plan(&view(&secret("token", "u", &data)), root_ca), expected, "{name}");
    }
}

#[test]
fn the_view_holds_no_token() {
    let held = format!("{:?}", view(&secret("s", "u", &json!({ "token": "c2VjcmV0", "namespace": "bmFtZXNwYWNl" }))));
    assert!(!held.contains("c2VjcmV0") && !held.contains("bmFtZXNwYWNl"), "{held}");
}
