//! Service accounts, their tokens, the root CA and aggregated cluster roles.

mod cleaner;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::authentication::v1 as authenticationv1;
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::api::rbac::v1 as rbacv1;
use kcm_e2e_harness::audit::{self, forbidden};
use kcm_e2e_harness::control_plane::{ControlPlane, Options};
use kcm_e2e_harness::kubectl::Kubectl;
use kcm_e2e_harness::manager;
use kcm_e2e_harness::process::Process;
use kcm_e2e_harness::scenario::{Case, LIMITS, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::{PATIENCE, eventually};
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

kcm_e2e_harness::scenarios! {
    Setup::of("serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller,\
                      clusterrole-aggregation-controller,legacy-serviceaccount-token-cleaner-controller").with_own_managers() => {
        "serviceaccount/is_in_every_namespace": account_is_in_every_namespace,
        "root-ca-certificate-publisher/is_in_every_namespace": root_ca_is_in_every_namespace,
        "serviceaccount-token/tokens_live_with_their_accounts": tokens_live,
        "clusterrole-aggregation/follows_the_roles": aggregates_cluster_roles,
        "legacy-serviceaccount-token-cleaner/cleans_up": unused_tokens_are_cleaned_up,
    }
    Setup::of("serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller,\
                      clusterrole-aggregation-controller,legacy-serviceaccount-token-cleaner-controller").ours().exclusively() => {
        "legacy-serviceaccount-token-cleaner/acts_as_recorded": cleaner::acts_as_recorded,
    }
}

/// A control plane of its own, with the files of a manager beside it.
struct Cluster {
    controllers: &'static str,
    plane: ControlPlane,
}

impl Cluster {
    async fn start(case: &Case) -> Result<Self> {
        let plane = ControlPlane::start(Options { strict: true, ..Options::default() }).await?;
        Ok(Self { controllers: case.controllers(), plane })
    }

    /// Starts a manager; ours has upstream's roles and no others.
    fn run(&self, subject: Subject, args: &[&str]) -> Result<Process> {
        let pki = self.plane.logs().join("pki");
        let own = [
            format!("--controllers={}", self.controllers),
            format!("--root-ca-file={}", pki.join("ca.crt").display()),
            format!("--service-account-private-key-file={}", pki.join("sa.key").display()),
        ];
        let roles = if subject == Subject::Ours { manager::with_upstreams_roles(&self.plane) } else { Vec::new() };
        let given = LIMITS.iter().chain(args).map(|&arg| arg.to_owned());
        let args: Vec<String> = own.into_iter().chain(roles).chain(given).collect();
        manager::start(subject, &self.plane, &format!("security-{subject}"), &args)
    }

    fn kubectl<'a>(&'a self, namespace: &'a str) -> Kubectl<'a> {
        Kubectl { kubeconfig: self.plane.kubeconfig(), namespace, folder: self.plane.logs() }
    }

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.plane.client(), namespace)
    }

    /// Waits until a namespace has its account and its root CA; returns the uid of the account.
    async fn is_furnished(&self, namespace: &str) -> Result<String> {
        let authority = std::fs::read_to_string(self.plane.logs().join("pki/ca.crt"))?;
        eventually("the account and the root CA of the namespace", async || {
            let config_map = self.api::<corev1::ConfigMap>(namespace).get("kube-root-ca.crt").await?;
            let data = json!(config_map.data.unwrap_or_default());
            ensure!(data == json!({ "ca.crt": authority }), "{data}");
            let annotations = config_map.metadata.annotations.unwrap_or_default();
            let description = annotations.get("kubernetes.io/description").cloned().unwrap_or_default();
            ensure!(description.starts_with("Contains a CA bundle"), "{description}");
            let account = self.api::<corev1::ServiceAccount>(namespace).get("default").await?;
            account.metadata.uid.context("it has a uid")
        })
        .await
    }

    /// Creates a secret for the token of an account, as a person does.
    async fn create_secret(&self, namespace: &str, name: &str, account: &str) -> Result<()> {
        let kubectl = self.kubectl(namespace);
        let annotations = json!({ "kubernetes.io/service-account.name": account });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": { "name": name, "annotations": annotations },
        });
        kubectl.run(&format!("apply -f {}", kubectl.manifest(&secret)?)).await?;
        Ok(())
    }

    /// Waits until a secret has its token, and returns that.
    async fn token(&self, namespace: &str, name: &str) -> Result<String> {
        eventually("the token", async || {
            let secret = self.api::<corev1::Secret>(namespace).get(name).await?;
            let data = secret.data.unwrap_or_default();
            let text = |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned());
            ensure!(text("namespace").is_some_and(|text| text == namespace) && data.contains_key("ca.crt"));
            text("token").filter(|token| !token.is_empty()).context("it has no token")
        })
        .await
    }

    /// Waits until the roles of Kubernetes are aggregated.
    async fn has_aggregated_roles(&self) -> Result<()> {
        let roles: Api<rbacv1::ClusterRole> = Api::all(self.plane.client());
        eventually("the aggregated roles", async || {
            for name in ["admin", "edit", "view"] {
                let count = roles.get(name).await?.rules.unwrap_or_default().len();
                ensure!(count > 3, "{name} has {count} rules");
            }
            Ok(())
        })
        .await
    }

    async fn is_gone(&self, namespace: &str, secret: &str) -> Result<()> {
        eventually("the secret to be gone", async || {
            let found = self.api::<corev1::Secret>(namespace).get_opt(secret).await?;
            ensure!(found.is_none(), "it is there");
            Ok(())
        })
        .await
    }

    /// Our manager was refused nothing, and each controller wrote as its service account.
    fn has_acted_by_its_roles(&self, subject: Subject, expected: &[(&str, &str, &str)]) -> Result<()> {
        if subject == Subject::Peer {
            return Ok(());
        }
        let requests = self.plane.audited()?;
        let refused = forbidden(&requests);
        ensure!(refused.is_empty(), "{refused:?}");
        for (user, verb, resource) in expected {
            let found = requests.iter().any(|it| it.user == *user && it.verb == *verb && it.resource == *resource);
            ensure!(found, "no {verb} of {resource} by {user}");
        }
        Ok(())
    }
}

/// Each namespace has the account `default`, again after it is deleted.
async fn account_is_in_every_namespace(case: Case) -> Result<()> {
    let cluster = Cluster::start(&case).await?;
    let _manager = cluster.run(case.subject(), &[])?;
    cluster.is_furnished("default").await?;
    let kubectl = cluster.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    let uid = cluster.is_furnished("shop").await?;
    kubectl.run("delete serviceaccount default --wait=false").await?;
    eventually("another account", async || {
        ensure!(cluster.is_furnished("shop").await? != uid, "it is the first one");
        Ok(())
    })
    .await?;
    let account = "system:serviceaccount:kube-system:service-account-controller";
    cluster.has_acted_by_its_roles(case.subject(), &[(account, "create", "serviceaccounts")])
}

/// Each namespace has the config map of the root CA, again after it is deleted or changed.
async fn root_ca_is_in_every_namespace(case: Case) -> Result<()> {
    let cluster = Cluster::start(&case).await?;
    let _manager = cluster.run(case.subject(), &[])?;
    cluster.is_furnished("default").await?;
    let kubectl = cluster.kubectl("shop");
    kubectl.run("create namespace shop").await?;
    cluster.is_furnished("shop").await?;
    kubectl.run("delete configmap kube-root-ca.crt").await?;
    cluster.is_furnished("shop").await?;
    kubectl.run(r#"patch configmap kube-root-ca.crt -p {"data":{"ca.crt":"another","more":"data"}}"#).await?;
    cluster.is_furnished("shop").await?;
    let account = "system:serviceaccount:kube-system:root-ca-cert-publisher";
    let expected = [(account, "create", "configmaps"), (account, "update", "configmaps")];
    cluster.has_acted_by_its_roles(case.subject(), &expected)
}

/// A secret gets a token that the API server accepts; it goes with its account, and its reference goes with it.
async fn tokens_live(case: Case) -> Result<()> {
    let cluster = Cluster::start(&case).await?;
    let _manager = cluster.run(case.subject(), &[])?;
    let kubectl = cluster.kubectl("default");
    kubectl.run("create serviceaccount robot").await?;
    let accounts: Api<corev1::ServiceAccount> = cluster.api("default");
    let uid = accounts.get("robot").await?.metadata.uid.context("it has a uid")?;
    cluster.create_secret("default", "token", "robot").await?;
    let token = cluster.token("default", "token").await?;

    let part = |number: usize| -> Result<Value> {
        let part = token.split('.').nth(number).context("a token has three parts")?;
        Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part)?)?)
    };
    let header = part(0)?;
    let names: Vec<&String> = header.as_object().context("the header is an object")?.keys().collect();
    ensure!(header["alg"] == "ES256" && names == ["alg", "kid"], "{header}");
    let claims = json!({
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": "default",
        "kubernetes.io/serviceaccount/secret.name": "token",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": uid,
        "sub": "system:serviceaccount:default:robot",
    });
    ensure!(part(1)? == claims, "{}", part(1)?);
    let reviews: Api<authenticationv1::TokenReview> = Api::all(cluster.plane.client());
    let review = json!({ "metadata": {}, "spec": { "token": token } });
    let review = reviews.create(&PostParams::default(), &serde_json::from_value(review)?).await?;
    let user = review.status.and_then(|status| status.user).and_then(|user| user.username).unwrap_or_default();
    ensure!(user == "system:serviceaccount:default:robot", "{user:?}");

    kubectl.run(r#"patch serviceaccount robot -p {"secrets":[{"name":"token"},{"name":"other"}]}"#).await?;
    kubectl.run("delete secret token").await?;
    eventually("the reference to be removed", async || {
        let left = json!(accounts.get("robot").await?.secrets.unwrap_or_default());
        ensure!(left == json!([{ "name": "other" }]), "{left}");
        Ok(())
    })
    .await?;
    cluster.create_secret("default", "second", "robot").await?;
    cluster.token("default", "second").await?;
    kubectl.run("delete serviceaccount robot").await?;
    cluster.is_gone("default", "second").await?;
    cluster.create_secret("default", "of-nobody", "missing").await?;
    cluster.is_gone("default", "of-nobody").await?;
    let expected = [
        (audit::MANAGER, "update", "secrets"),
        (audit::MANAGER, "delete", "secrets"),
        (audit::MANAGER, "update", "serviceaccounts"),
    ];
    cluster.has_acted_by_its_roles(case.subject(), &expected)
}

/// The roles of Kubernetes itself are aggregated, and follow roles that people add and remove.
async fn aggregates_cluster_roles(case: Case) -> Result<()> {
    let cluster = Cluster::start(&case).await?;
    let _manager = cluster.run(case.subject(), &[])?;
    let roles: Api<rbacv1::ClusterRole> = Api::all(cluster.plane.client());
    let rules_of = async |name: &str| -> Result<Vec<Value>> {
        Ok(roles.get(name).await?.rules.unwrap_or_default().iter().map(|rule| json!(rule)).collect())
    };
    cluster.has_aggregated_roles().await?;
    let websites = json!({ "apiGroups": ["example.com"], "resources": ["websites"], "verbs": ["get"] });
    let labels = json!({ "rbac.authorization.k8s.io/aggregate-to-view": "true" });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "websites", "labels": labels }, "rules": [websites],
    });
    let kubectl = cluster.kubectl("default");
    kubectl.run(&format!("apply -f {}", kubectl.manifest(&role)?)).await?;
    for name in ["view", "edit", "admin"] {
        eventually("the new rule, through the roles between", async || {
            ensure!(rules_of(name).await?.contains(&websites), "{name} has not the rule");
            Ok(())
        })
        .await?;
    }
    let view = roles.get("view").await?;
    let managers = view.metadata.managed_fields.unwrap_or_default();
    let owner = managers.iter().find(|it| it.manager.as_deref() == Some("clusterrole-aggregation-controller"));
    ensure!(owner.is_some_and(|it| it.operation.as_deref() == Some("Apply")), "{managers:?}");
    kubectl.run("delete clusterrole websites").await?;
    eventually("the rule to be removed", async || {
        ensure!(!rules_of("admin").await?.contains(&websites), "it is there");
        Ok(())
    })
    .await?;
    let aggregation = "system:serviceaccount:kube-system:clusterrole-aggregation-controller";
    cluster.has_acted_by_its_roles(case.subject(), &[(aggregation, "patch", "clusterroles")])
}

/// A token that was made automatically and that nothing uses is labelled, and deleted by a round of a later day; others
/// stay.
async fn unused_tokens_are_cleaned_up(case: Case) -> Result<()> {
    const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
    let cluster = Cluster::start(&case).await?;
    let (system, kubectl) = (cluster.kubectl("kube-system"), cluster.kubectl("default"));
    let tracking = "patch configmap kube-apiserver-legacy-service-account-token-tracking";
    eventually("the API server to track tokens", async || {
        system.run(&format!(r#"{tracking} -p {{"data":{{"since":"2020-01-01"}}}}"#)).await
    })
    .await?;
    kubectl.run("create serviceaccount robot").await?;
    for name in ["unused", "used", "by-hand", "mounted"] {
        cluster.create_secret("default", name, "robot").await?;
    }
    let references = r#"{"secrets":[{"name":"unused"},{"name":"used"},{"name":"mounted"}]}"#;
    kubectl.run(&format!("patch serviceaccount robot -p {references}")).await?;
    kubectl.run("label secret used kubernetes.io/legacy-token-last-used=2999-01-01").await?;
    let volumes = json!([{ "name": "token", "secret": { "secretName": "mounted" } }]);
    let spec = json!({
        "serviceAccountName": "robot", "volumes": volumes, "containers": [{ "name": "main", "image": "example/main:1" }],
    });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod" }, "spec": spec });
    kubectl.run(&format!("apply -f {}", kubectl.manifest(&pod)?)).await?;
    let secrets: Api<corev1::Secret> = cluster.api("default");
    let label = async |name: &str| -> Result<Option<String>> {
        Ok(secrets.get(name).await?.metadata.labels.unwrap_or_default().remove(INVALID_SINCE))
    };
    let others_stay = async || -> Result<()> {
        for name in ["used", "by-hand", "mounted"] {
            ensure!(label(name).await?.is_none(), "{name} is labelled");
        }
        Ok(())
    };

    let period = ["--legacy-service-account-token-clean-up-period=1ms"];
    let mut manager = cluster.run(case.subject(), &period)?;
    eventually("the label", async || label("unused").await?.context("it has no label")).await?;
    manager.terminate()?;
    manager.wait(PATIENCE).await?;
    others_stay().await?;
    kubectl.run(&format!("label --overwrite secret unused {INVALID_SINCE}=2020-01-01")).await?;
    // A manager looks once at its start, at what the API server has cached.
    eventually("a cached list to have the label", async || {
        let cached = secrets.list(&ListParams::default().match_any()).await?;
        let mut labels = cached.iter().filter_map(|secret| secret.metadata.labels.as_ref()?.get(INVALID_SINCE));
        ensure!(labels.any(|since| since == "2020-01-01"), "it has another");
        Ok(())
    })
    .await?;
    let _manager = cluster.run(case.subject(), &period)?;
    cluster.is_gone("default", "unused").await?;
    others_stay().await?;
    let cleaner = "system:serviceaccount:kube-system:legacy-service-account-token-cleaner";
    let expected = [(cleaner, "get", "configmaps"), (cleaner, "patch", "secrets"), (cleaner, "delete", "secrets")];
    cluster.has_acted_by_its_roles(case.subject(), &expected)
}
