//! Tokens of service accounts, which the API server accepts. Scripts compare the rest.

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::authentication::v1 as authenticationv1;
use k8s_openapi::api::core::v1 as corev1;
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("serviceaccount-token-controller").with_own_managers() => {
        "serviceaccount-token/tokens_are_accepted": tokens_are_accepted,
    }
}

/// A secret gets a token that names its account, and that the API server accepts.
async fn tokens_are_accepted(case: Case) -> Result<()> {
    let pki = case.plane().logs().join("pki");
    let key = format!("--service-account-private-key-file={}", pki.join("sa.key").display());
    let mut manager = case.start(case.subject(), &[key.as_str()])?;
    let kubectl = Kubectl::of(&case);
    kubectl.run("create serviceaccount robot").await?;
    let account = case.api::<corev1::ServiceAccount>().get("robot").await?;
    let uid = account.metadata.uid.context("it has a uid")?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "token", "annotations": { "kubernetes.io/service-account.name": "robot" } },
    });
    kubectl.run(&format!("create -f {}", kubectl.manifest(&secret)?)).await?;
    let secrets: Api<corev1::Secret> = case.api();
    let token = eventually("the token", async || {
        let token = secrets.get("token").await?.data.and_then(|mut data| data.remove("token"));
        String::from_utf8(token.context("it has no token")?.0).context("a token is text")
    })
    .await?;

    let part = |number: usize| -> Result<Value> {
        let part = token.split('.').nth(number).context("a token has three parts")?;
        Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part)?)?)
    };
    let header = part(0)?;
    let names: Vec<&String> = header.as_object().context("the header is an object")?.keys().collect();
    ensure!(header["alg"] == "ES256" && names == ["alg", "kid"], "{header}");
    let subject = format!("system:serviceaccount:{}:robot", case.namespace());
    let claims = json!({
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": case.namespace(),
        "kubernetes.io/serviceaccount/secret.name": "token",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": uid,
        "sub": subject,
    });
    ensure!(part(1)? == claims, "{}", part(1)?);
    let reviews: Api<authenticationv1::TokenReview> = Api::all(case.client());
    let review = json!({ "metadata": {}, "spec": { "token": token } });
    let review = reviews.create(&PostParams::default(), &serde_json::from_value(review)?).await?;
    let user = review.status.and_then(|status| status.user).and_then(|user| user.username).unwrap_or_default();
    ensure!(user == subject, "{user:?}");
    manager.must_run()
}
