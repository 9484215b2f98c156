//! The credentials of the access table, and a client that presents them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use http::{HeaderName, HeaderValue};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::pki::{Identity, Pki};
use kcm_e2e_harness::scenario::Case;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use serde_json::json;
use tempfile::TempDir;

/// What a client presents.
#[derive(Default)]
pub(crate) struct Credential {
    certificate: Option<(PathBuf, PathBuf)>,
    headers: Vec<(&'static str, String)>,
}

impl Credential {
    /// A certificate and its key, in files.
    pub(super) fn of_certificate(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate: Some((certificate, key)), ..Self::default() }
    }

    /// A bearer token.
    pub(crate) fn of_token(token: &str) -> Self {
        Self { headers: vec![("authorization", format!("Bearer {token}"))], ..Self::default() }
    }
}

/// The credentials of the access table.
pub(super) struct Credentials {
    folder: TempDir,
    nobody: (PathBuf, PathBuf),
    reader: (PathBuf, PathBuf),
    masters: (PathBuf, PathBuf),
    proxy: (PathBuf, PathBuf),
    other_proxy: (PathBuf, PathBuf),
    stranger: (PathBuf, PathBuf),
    token_of_nobody: String,
    token_of_reader: String,
}

impl Credentials {
    /// Makes users and service accounts of which one may get `/metrics`.
    pub(super) async fn make(case: &Case) -> Result<Self> {
        let namespace = case.namespace();
        let (reader, nobody) = (format!("reader-{namespace}"), format!("nobody-{namespace}"));
        let roles: Api<rbacv1::ClusterRole> = Api::all(case.client());
        let role = serde_json::from_value(json!({
            "metadata": { "name": &reader },
            "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
        }))?;
        roles.create(&PostParams::default(), &role).await.context("cannot make the role")?;
        let bindings: Api<rbacv1::ClusterRoleBinding> = Api::all(case.client());
        let group = "rbac.authorization.k8s.io";
        let binding = serde_json::from_value(json!({
            "metadata": { "name": &reader },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": &reader },
            "subjects": [
                { "apiGroup": group, "kind": "User", "name": &reader },
                { "kind": "ServiceAccount", "namespace": namespace, "name": "reader" },
            ],
        }))?;
        bindings.create(&PostParams::default(), &binding).await.context("cannot bind the role")?;
        let folder = tempfile::tempdir().context("no room for certificates")?;
        let proxies = Pki::new(&folder.path().join("proxies"))?;
        let strangers = Pki::new(&folder.path().join("strangers"))?;
        Ok(Self {
            nobody: of_cluster(case, &nobody, &[])?,
            reader: of_cluster(case, &reader, &[])?,
            masters: of_cluster(case, &format!("master-{namespace}"), &["system:masters"])?,
            proxy: files(proxies.client("front-proxy", &[])?),
            other_proxy: files(proxies.client("other", &[])?),
            stranger: files(strangers.client(&reader, &[])?),
            token_of_nobody: token(case, "nobody").await?,
            token_of_reader: token(case, "reader").await?,
            folder,
        })
    }

    /// The flags of a manager that asks the API server about credentials, and trusts the front proxy.
    pub(super) fn arguments(&self, case: &Case) -> Vec<String> {
        let kubeconfig = case.plane().kubeconfig().display();
        vec![
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--requestheader-client-ca-file={}", self.folder.path().join("proxies/ca.crt").display()),
            "--requestheader-allowed-names=front-proxy".to_owned(),
            "--authorization-always-allow-paths=/healthz".to_owned(),
        ]
    }

    /// The credential of that name in the table.
    pub(super) fn named(&self, name: &str) -> Result<Credential> {
        let user = |name: &str| vec![("x-remote-user", name.to_owned())];
        let bearer = |token: &str| vec![("authorization", format!("Bearer {token}"))];
        let reader = self.reader.0.file_stem().and_then(|stem| stem.to_str()).context("a user has a name")?;
        let nobody = self.nobody.0.file_stem().and_then(|stem| stem.to_str()).context("a user has a name")?;
        let with = |files: &(PathBuf, PathBuf)| Some(files.clone());
        let (certificate, headers) = match name {
            "none" => (None, Vec::new()),
            "wrong-token" => (None, bearer("wrong")),
            "token-of-nobody" => (None, bearer(&self.token_of_nobody)),
            "token-of-reader" => (None, bearer(&self.token_of_reader)),
            "certificate-of-nobody" => (with(&self.nobody), Vec::new()),
            "certificate-of-reader" => (with(&self.reader), Vec::new()),
            "certificate-of-masters" => (with(&self.masters), Vec::new()),
            "unknown-certificate" => (with(&self.stranger), Vec::new()),
            "unknown-certificate-and-token-of-reader" => (with(&self.stranger), bearer(&self.token_of_reader)),
            "certificate-of-nobody-and-token-of-reader" => (with(&self.nobody), bearer(&self.token_of_reader)),
            "certificate-of-nobody-and-headers-for-reader" => (with(&self.nobody), user(reader)),
            "headers-for-reader" => (None, user(reader)),
            "proxy-for-nobody" => (with(&self.proxy), user(nobody)),
            "proxy-for-reader" => (with(&self.proxy), user(reader)),
            "proxy-without-headers" => (with(&self.proxy), Vec::new()),
            "other-proxy-for-reader" => (with(&self.other_proxy), user(reader)),
            other => anyhow::bail!("no credential is called {other}"),
        };
        Ok(Credential { certificate, headers })
    }
}

fn files(identity: Identity) -> (PathBuf, PathBuf) {
    (identity.certificate, identity.key)
}

/// A certificate of the cluster's authority of clients.
fn of_cluster(case: &Case, user: &str, groups: &[&str]) -> Result<(PathBuf, PathBuf)> {
    let kubeconfig = Kubeconfig::read_from(case.plane().kubeconfig_for(user, groups)?)?;
    let user = kubeconfig.auth_infos.into_iter().next().and_then(|named| named.auth_info).context("it has a user")?;
    let (certificate, key) = user.client_certificate.zip(user.client_key).context("it has a certificate")?;
    Ok((certificate.into(), key.into()))
}

/// A token of a service account of this scenario.
async fn token(case: &Case, name: &str) -> Result<String> {
    let accounts: Api<corev1::ServiceAccount> = case.api();
    let account = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    accounts.create(&PostParams::default(), &account).await.with_context(|| format!("cannot make {name}"))?;
    let request = TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let answer = answer.with_context(|| format!("cannot get a token of {name}"))?;
    answer.status.and_then(|status| status.token).context("the answer to a token request has a token")
}

/// The HTTPS port of a manager on this machine.
pub(crate) struct Port(pub(crate) u16);

impl Port {
    /// Code and body of the answer to a GET, on a connection of its own.
    pub(crate) async fn get(&self, path: &str, credential: &Credential) -> Result<(u16, String)> {
        let (code, body) = self.get_bytes(path, credential).await?;
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    }

    /// As [`get`](Self::get), of a body that is no text.
    pub(super) async fn get_bytes(&self, path: &str, credential: &Credential) -> Result<(u16, Vec<u8>)> {
        let address = format!("https://127.0.0.1:{}", self.0).parse().context("the address is none")?;
        let mut config = kube::Config::new(address);
        // The manager signs its certificate itself.
        config.accept_invalid_certs = true;
        if let Some((certificate, key)) = &credential.certificate {
            config.auth_info.client_certificate = Some(certificate.display().to_string());
            config.auth_info.client_key = Some(key.display().to_string());
        }
        let client = kube::Client::try_from(config).context("cannot make a client of the port")?;
        let mut request = http::Request::get(path).body(kube::client::Body::empty())?;
        for (name, value) in &credential.headers {
            request.headers_mut().append(HeaderName::from_static(name), HeaderValue::try_from(value)?);
        }
        let response = client.send(request).await.with_context(|| format!("GET {path}"))?;
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.with_context(|| format!("GET {path}"))?;
        Ok((code, body.to_vec()))
    }
}
