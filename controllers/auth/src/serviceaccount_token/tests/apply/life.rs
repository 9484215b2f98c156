//! The life of a secret with a token.

use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::Sandbox;
use kcm_testing::sandbox::direct::DirectClient;
use serde_json::{Value, json};

use super::{
    ACCOUNTS, SECOND, SECRETS, claims, create_secret, environment, has_token, is_filled, is_gone, key, key_file,
    reference, robot, start, text, with_key, writes,
};
use crate::root_ca_certificate_publisher;
use crate::serviceaccount_token::DESCRIPTOR;

#[tokio::test(start_paused = true)]
async fn a_secret_is_filled_by_one_write_and_then_left_alone() {
    let cluster = start(environment()).await;
    create_secret(cluster.sandbox(), "token");
    let secret = is_filled(&cluster, "token").await;
    let uid = robot(cluster.sandbox())["metadata"]["uid"].clone();
    assert_eq!((text(&secret, "ca.crt"), text(&secret, "namespace")), ("CA".to_owned(), "shop".to_owned()));
    assert_eq!(
        secret["metadata"]["annotations"],
        json!({ "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": uid })
    );
    let claims = claims(&secret);
    assert_eq!(claims["kubernetes.io/serviceaccount/service-account.uid"], uid);
    assert_eq!(claims["kubernetes.io/serviceaccount/secret.name"], "token");
    assert_eq!(claims["sub"], "system:serviceaccount:shop:robot");
    cluster.advance(1200 * SECOND).await;
    assert_eq!(writes(&cluster), ["PUT /api/v1/namespaces/shop/secrets/token"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_there_and_what_this_version_does_not_know_stays() {
    let cluster = start(environment()).await;
    let metadata = json!({
        "namespace": "shop", "name": "token", "labels": { "a": "b" },
        "annotations": { "kubernetes.io/service-account.name": "robot", "c": "d" },
    });
    // `ZQ==` is another namespace, `b3du` a token of somebody else's.
    let data = json!({ "namespace": "ZQ==", "token": "b3du", "more": "YQ==" });
    let secret = json!({ "metadata": metadata, "type": "kubernetes.io/service-account-token", "data": data });
    cluster.sandbox().create(&SECRETS, secret).unwrap();
    cluster
        .eventually("the CA", |sandbox| {
            sandbox.get(&SECRETS, &key("token")).is_some_and(|secret| text(&secret, "ca.crt") == "CA")
        })
        .await;
    let secret = cluster.sandbox().get(&SECRETS, &key("token")).unwrap();
    assert_eq!(secret["data"], json!({ "ca.crt": "Q0E=", "namespace": "ZQ==", "token": "b3du", "more": "YQ==" }));
    assert_eq!(
        (&secret["metadata"]["labels"]["a"], &secret["metadata"]["annotations"]["c"]),
        (&json!("b"), &json!("d"))
    );
}

#[tokio::test(start_paused = true)]
async fn secrets_go_with_their_account_and_others_stay() {
    let cluster = start(environment()).await;
    for name in ["one", "two"] {
        create_secret(cluster.sandbox(), name);
        is_filled(&cluster, name).await;
    }
    let other = json!({ "metadata": { "namespace": "shop", "name": "other" }, "type": "Opaque" });
    cluster.sandbox().create(&SECRETS, other).unwrap();
    cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
    is_gone(&cluster, "one").await;
    is_gone(&cluster, "two").await;
    cluster.settle().await;
    assert!(cluster.sandbox().get(&SECRETS, &key("other")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_an_account_that_does_not_exist_is_deleted_with_its_uid() {
    let cluster = start(environment()).await;
    cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
    let created = create_secret(cluster.sandbox(), "token");
    is_gone(&cluster, "token").await;
    let requests = cluster.requests_of("tokens-controller");
    let deletion = requests.iter().find(|request| request.method == "DELETE").expect("it was deleted");
    let body: Value = serde_json::from_str(&deletion.body).unwrap();
    assert_eq!(body["preconditions"], json!({ "uid": created["metadata"]["uid"] }));
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_an_earlier_account_of_the_name_is_deleted_and_one_without_a_uid_is_filled() {
    let cluster = start(environment().prepare(|sandbox: &Sandbox| {
        let earlier = create_secret(sandbox, "earlier");
        assert!(earlier["metadata"]["uid"].is_string());
        let uid = json!({ "metadata": { "annotations": { "kubernetes.io/service-account.uid": "earlier" } } });
        sandbox.patch(&SECRETS, &key("earlier"), &uid).unwrap();
        create_secret(sandbox, "without");
    }))
    .await;
    is_gone(&cluster, "earlier").await;
    is_filled(&cluster, "without").await;
}

#[tokio::test(start_paused = true)]
async fn the_reference_to_a_deleted_secret_is_removed_and_others_stay() {
    let cluster = start(environment()).await;
    create_secret(cluster.sandbox(), "token");
    reference(cluster.sandbox(), &["token", "other"]);
    is_filled(&cluster, "token").await;
    cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
    let rest = json!([{ "name": "other" }]);
    cluster.eventually("the reference is gone", |sandbox| robot(sandbox)["secrets"] == rest).await;

    create_secret(cluster.sandbox(), "last");
    reference(cluster.sandbox(), &["last"]);
    is_filled(&cluster, "last").await;
    cluster.sandbox().delete(&SECRETS, &key("last")).unwrap();
    cluster.eventually("the last reference is gone", |sandbox| robot(sandbox).get("secrets").is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn an_account_that_does_not_reference_a_deleted_secret_is_not_written() {
    let cluster = start(environment()).await;
    create_secret(cluster.sandbox(), "token");
    reference(cluster.sandbox(), &["other"]);
    is_filled(&cluster, "token").await;
    cluster.sandbox().delete(&SECRETS, &key("token")).unwrap();
    cluster.advance(60 * SECOND).await;
    assert_eq!(writes(&cluster), ["PUT /api/v1/namespaces/shop/secrets/token"]);
}

#[tokio::test(start_paused = true)]
async fn only_secrets_of_the_type_are_listed_watched_and_cached() {
    let cluster = start(environment().prepare(|sandbox| {
        let large = "eHh4".repeat(100_000);
        for number in 0..20 {
            let metadata = json!({ "namespace": "shop", "name": format!("large-{number}") });
            sandbox.create(&SECRETS, json!({ "metadata": metadata, "data": { "text": large } })).unwrap();
        }
        for number in 0..10 {
            create_secret(sandbox, &format!("token-{number}"));
        }
    }))
    .await;
    is_filled(&cluster, "token-9").await;
    cluster.settle().await;
    let caches = cluster.handle().caches();
    let (status, bytes) = caches.iter().find(|(status, _)| status.resource == SECRETS).expect("secrets are cached");
    assert_eq!(status.objects, 10);
    assert!(*bytes < 10 * 400, "{bytes} bytes for ten secrets with tokens of some hundred bytes each");
    for request in cluster.requests_of("shared-informers") {
        let is_narrow = request.query.contains("fieldSelector=type%3Dkubernetes.io%2Fservice-account-token");
        assert!(is_narrow || request.path != "/api/v1/secrets", "{}", request.query);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_key_there_is_no_token_controller() {
    let environment = TestEnvironment::new([DESCRIPTOR, root_ca_certificate_publisher::DESCRIPTOR]).namespace("shop");
    let cluster = environment.start().await;
    cluster.sandbox().create(&ACCOUNTS, json!({ "metadata": { "namespace": "shop", "name": "robot" } })).unwrap();
    create_secret(cluster.sandbox(), "token");
    cluster.advance(60 * SECOND).await;
    assert!(!has_token(cluster.sandbox(), "token"));
    assert!(cluster.requests_of("tokens-controller").is_empty());
}

#[tokio::test(start_paused = true)]
async fn r5_a_changed_root_ca_is_written_into_every_token_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    let ca = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    std::fs::write(&path, ca).unwrap();
    let key_file = key_file("es256.pem").display().to_string();
    let environment = with_key(&key_file).arguments(&[&format!("--root-ca-file={}", path.display())]);
    let cluster = start(environment).await;
    for name in ["first", "second"] {
        create_secret(cluster.sandbox(), name);
        assert_eq!(text(&is_filled(&cluster, name).await, "ca.crt"), ca);
    }
    let token = text(&is_filled(&cluster, "first").await, "token");
    let rotated = format!("{ca}{ca}");
    std::fs::write(&path, &rotated).unwrap();
    let has_it = |sandbox: &Sandbox, name: &str| {
        text(&sandbox.get(&SECRETS, &key(name)).unwrap_or_default(), "ca.crt") == rotated
    };
    cluster.eventually("both have it", |sandbox| has_it(sandbox, "first") && has_it(sandbox, "second")).await;
    assert_eq!(text(&is_filled(&cluster, "first").await, "token"), token, "the token stays");
}

/// As upstream: the key is read at the start, whatever becomes of its file.
#[tokio::test(start_paused = true)]
async fn all_tokens_of_a_process_have_the_key_of_its_start_while_the_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sa.key");
    std::fs::copy(key_file("es256.pem"), &path).unwrap();
    let cluster = start(with_key(&path.display().to_string())).await;
    let header = |secret: &Value| text(secret, "token").split('.').next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    for (name, content) in
        [("first", None), ("torn", Some("-----BEGIN EC PRIV")), ("second", Some("")), ("third", None)]
    {
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        create_secret(cluster.sandbox(), name);
        headers.push(header(&is_filled(&cluster, name).await));
    }
    assert!(headers.iter().all(|header| *header == headers[0]), "{headers:?}");
    std::fs::copy(key_file("es384.pem"), &path).unwrap();
    cluster.kill();
    create_secret(cluster.sandbox(), "of-the-next-process");
    assert_ne!(header(&is_filled(&cluster, "of-the-next-process").await), headers[0]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_waits_while_its_account_cannot_be_decoded_and_is_deleted_with_it() {
    let broken = environment().allow_error("Object cannot be decoded").prepare(|sandbox| {
        DirectClient::new(sandbox).merge(&ACCOUNTS, &key("robot"), None, &json!({ "secrets": 5 })).unwrap();
        create_secret(sandbox, "token");
    });
    let cluster = start(broken).await;
    cluster.advance(60 * SECOND).await;
    assert!(cluster.sandbox().get(&SECRETS, &key("token")).is_some() && writes(&cluster).is_empty());
    let mut requests = cluster.requests_of("tokens-controller");
    requests.retain(|request| request.path.ends_with("/robot"));
    assert!(requests.is_empty(), "nothing is tried: {requests:?}");
    cluster.sandbox().delete(&ACCOUNTS, &key("robot")).unwrap();
    is_gone(&cluster, "token").await;
}
