//! The client configuration: from a kubeconfig file, or in-cluster from the service account.

use std::path::{Path, PathBuf};

use http::uri::InvalidUri;
use http::{HeaderValue, Uri};
use kube::config::{Cluster, Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError};
use secrecy::ExposeSecret;

use super::proxy::{Environment, Proxy};

/// An unusable configuration. Each message says what was read and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file does not exist.
    #[error("the kubeconfig {path:?} does not exist: check the path given with --kubeconfig")]
    Missing {
        /// Path of the kubeconfig.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("the kubeconfig {path:?} cannot be read ({reason}): check its permissions and the user of this process")]
    Unreadable {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The file is not a kubeconfig.
    #[error("the kubeconfig {path:?} is not a valid `kind: Config` file: {reason}")]
    Malformed {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// The position and the reason.
        reason: String,
    },
    /// The file has no current context.
    #[error("the kubeconfig {path:?} has no current context: set one with `kubectl config use-context`")]
    NoCurrentContext {
        /// Path of the kubeconfig.
        path: PathBuf,
    },
    /// The file refers to an entry that it does not contain.
    #[error("the kubeconfig {path:?} has no {missing}: add it, or choose another current context")]
    Incomplete {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// The entry that is missing.
        missing: String,
    },
    /// A certificate or key of the kubeconfig is invalid.
    #[error("the kubeconfig {path:?} has an unusable {field}: {reason}")]
    BadData {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// The field that is invalid.
        field: &'static str,
        /// The reason why it is invalid.
        reason: String,
    },
    /// No file was given, and the process does not run in a pod.
    #[error(
        "no --kubeconfig was given and this process does not run in a pod ({variable} is not set): give --kubeconfig=FILE"
    )]
    NotInCluster {
        /// The missing environment variable.
        variable: &'static str,
    },
    /// No file was given, and the service account of the pod cannot be used.
    #[error(
        "no --kubeconfig was given, and the pod's service account cannot be used ({reason}): check that its token is mounted"
    )]
    InCluster {
        /// The error of the token or CA.
        reason: String,
    },
    /// The proxy that the kubeconfig or the environment names for the API server cannot be used.
    #[error("the proxy of {source_name} for the API server {server} cannot be used: {reason}")]
    Proxy {
        /// The variable, or the field of the kubeconfig.
        source_name: String,
        /// URL of the API server.
        server: String,
        /// The reason why it cannot be used.
        reason: String,
    },
}

/// Loads the kubeconfig at `path`, or the in-cluster configuration if there is no path. `master` is an address of the
/// API server that overrides the address in the configuration.
///
/// Unlike kubectl it reads neither `KUBECONFIG` nor `~/.kube/config`.
///
/// # Errors
///
/// If the configuration is missing, unreadable or invalid, or its proxy cannot be used.
///
/// # Upstream
/// `proxy-url` of the kubeconfig is used in any case; else the proxy that the environment names for the server.
pub async fn load_config(path: Option<&Path>, master: Option<Uri>) -> Result<Config, LoadError> {
    let (mut config, proxy_url) = match path {
        Some(path) => from_file(path).await?,
        None => (in_cluster()?, None),
    };
    if let Some(master) = master {
        config.cluster_url = master;
    }
    // Only the `Session` retries writes, because it knows which are idempotent.
    config.default_retry = false;
    config.proxy_url = proxy(&config.cluster_url, proxy_url)?;
    Ok(config)
}

/// Returns the proxy for `server`: from the kubeconfig, or else from the environment.
fn proxy(server: &Uri, proxy_url: Option<String>) -> Result<Option<Uri>, LoadError> {
    let unusable = |source_name: &str, reason: String| LoadError::Proxy {
        source_name: source_name.to_owned(),
        server: server.to_string(),
        reason,
    };
    let (source_name, address) = match proxy_url {
        Some(url) => ("`proxy-url` in the kubeconfig", url),
        None => match Environment::of_process().proxy_for(server) {
            Ok(Some(named)) => (named.variable, named.address),
            Ok(None) => return Ok(None),
            Err(error) => return Err(unusable("HTTP_PROXY", error.to_string())),
        },
    };
    Proxy::parse(&address).map_err(|error| unusable(source_name, error.to_string()))?;
    // What is parsed as host and port alone has no scheme.
    let address = if address.contains("://") { address } else { format!("http://{address}") };
    address.parse().map(Some).map_err(|error: InvalidUri| unusable(source_name, error.to_string()))
}

/// The configuration of a file, and its `proxy-url`.
async fn from_file(path: &Path) -> Result<(Config, Option<String>), LoadError> {
    let explain = |error| explain(path.to_owned(), &error);
    let mut file = Kubeconfig::read_from(path).map_err(explain)?;
    let (mut proxy_url, mut authority) = (None, None);
    if let Some(cluster) = current_cluster(&mut file) {
        // Without one kube parses the proxy of the environment, and refuses what Go takes.
        proxy_url = cluster.proxy_url.replace("http://unused".to_owned()).filter(|url| !url.is_empty());
        let is_file = cluster.certificate_authority_data.as_ref().is_none_or(String::is_empty);
        authority = cluster.certificate_authority.clone().filter(|path| is_file && !path.is_empty());
    }
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(explain)?;
    config.root_cert_file = authority.map(PathBuf::from);
    // A token that is no header is refused here, because the file is known here.
    let token = config.auth_info.token.as_ref().map(ExposeSecret::expose_secret);
    if token.is_some_and(|token| HeaderValue::from_str(token).is_err()) {
        let reason = "it holds a line break or another control character".to_owned();
        return Err(LoadError::BadData { path: path.to_owned(), field: "`token`", reason });
    }
    Ok((config, proxy_url))
}

pub(super) fn current_cluster(file: &mut Kubeconfig) -> Option<&mut Cluster> {
    let name = file.current_context.as_ref()?;
    let context = file.contexts.iter().find(|context| context.name == *name)?.context.as_ref()?;
    let name = context.cluster.clone();
    file.clusters.iter_mut().find(|cluster| cluster.name == name)?.cluster.as_mut()
}

fn explain(path: PathBuf, error: &KubeconfigError) -> LoadError {
    let bad = |field, reason: String| LoadError::BadData { path: path.clone(), field, reason };
    match error {
        KubeconfigError::ReadConfig(io, path) if io.kind() == std::io::ErrorKind::NotFound => {
            LoadError::Missing { path: path.clone() }
        }
        KubeconfigError::ReadConfig(io, path) => LoadError::Unreadable { path: path.clone(), reason: io.to_string() },
        KubeconfigError::CurrentContextNotSet => LoadError::NoCurrentContext { path },
        KubeconfigError::LoadContext(name) if name.is_empty() => LoadError::NoCurrentContext { path },
        KubeconfigError::LoadContext(name) => {
            LoadError::Incomplete { path, missing: format!("context \"{name}\", which is its current context") }
        }
        KubeconfigError::LoadClusterOfContext(name) => {
            LoadError::Incomplete { path, missing: format!("cluster \"{name}\", which its current context names") }
        }
        KubeconfigError::MissingClusterUrl => {
            LoadError::Incomplete { path, missing: "`server` in the cluster of its current context".to_owned() }
        }
        KubeconfigError::ParseClusterUrl(why) => bad("`server`", why.to_string()),
        KubeconfigError::ParseProxyUrl(why) => bad("`proxy-url`", why.to_string()),
        KubeconfigError::LoadCertificateAuthority(why) => bad("`certificate-authority`", data_reason(why)),
        KubeconfigError::LoadClientCertificate(why) => bad("`client-certificate`", data_reason(why)),
        KubeconfigError::LoadClientKey(why) => bad("`client-key`", data_reason(why)),
        KubeconfigError::ParseCertificates(why) => bad("`certificate-authority`", why.to_string()),
        KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::FindPath
        | KubeconfigError::Parse(_) => LoadError::Malformed { path, reason: first_line(&error.to_string()) },
    }
}

fn data_reason(error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(why) => format!("its data is not base64 ({why})"),
        LoadDataError::ReadFile(why, path) => format!("the file {} cannot be read ({why})", path.display()),
        LoadDataError::NoBase64DataOrFile => "it is missing, though its counterpart is given".to_owned(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

fn in_cluster() -> Result<Config, LoadError> {
    for variable in ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
        if std::env::var_os(variable).is_none_or(|value| value.is_empty()) {
            return Err(LoadError::NotInCluster { variable });
        }
    }
    Config::incluster().map_err(|error: InClusterError| LoadError::InCluster { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    struct File(PathBuf);

    impl File {
        fn with(text: &str) -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("kcm-kubeconfig-{}-{number}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            Self(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            drop(std::fs::remove_file(&self.0));
        }
    }

    fn kubeconfig(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             contexts:\n- name: c\n  context: {{cluster: k, user: u}}\n\
             clusters:\n- name: k\n  cluster: {cluster}\n\
             users:\n- name: u\n  user: {user}\n"
        )
    }

    async fn refusal(text: &str) -> String {
        let file = File::with(text);
        let error = load_config(Some(&file.0), None).await.unwrap_err();
        error.to_string().replace(file.0.to_str().unwrap(), "FILE")
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_refused_in_one_sentence() {
        let missing = load_config(Some(Path::new("/nowhere/kube.conf")), None).await.unwrap_err().to_string();
        assert_eq!(
            missing,
            "the kubeconfig \"/nowhere/kube.conf\" does not exist: check the path given with --kubeconfig"
        );
        let directory = load_config(Some(Path::new("/")), None).await.unwrap_err().to_string();
        assert!(directory.starts_with("the kubeconfig \"/\" cannot be read ("), "{directory}");

        let fine = "{server: \"https://127.0.0.1:6443\"}";
        for (text, begins) in [
            ("contexts: [".to_owned(), "the kubeconfig \"FILE\" is not a valid `kind: Config` file: "),
            ("apiVersion: v1\nkind: Config\n".to_owned(), "the kubeconfig \"FILE\" has no current context: "),
            (
                "kind: Config\ncurrent-context: gone\n".to_owned(),
                "the kubeconfig \"FILE\" has no context \"gone\", which is its current context: ",
            ),
            (kubeconfig("{}", "{}"), "the kubeconfig \"FILE\" has no `server` in the cluster"),
            (
                kubeconfig(fine, "{}").replace("name: k", "name: other"),
                "the kubeconfig \"FILE\" has no cluster \"k\", which its current context names",
            ),
            (
                kubeconfig("{server: \"https://127.0.0.1\", certificate-authority-data: \"%%\"}", "{}"),
                "the kubeconfig \"FILE\" has an unusable `certificate-authority`: its data is not base64",
            ),
            (
                kubeconfig("{server: \"https://127.0.0.1\", certificate-authority: /nowhere/ca.crt}", "{}"),
                "the kubeconfig \"FILE\" has an unusable `certificate-authority`: the file /nowhere/ca.crt cannot be read",
            ),
            (
                kubeconfig(fine, "{token: \"a\\nb\"}"),
                "the kubeconfig \"FILE\" has an unusable `token`: it holds a line break or another control character",
            ),
            (
                kubeconfig("{server: \"https://127.0.0.1\", proxy-url: \"socks4://proxy:1080\"}", "{}"),
                "the proxy of `proxy-url` in the kubeconfig for the API server https://127.0.0.1/ cannot be used: the protocol socks4 is not supported",
            ),
        ] {
            let sentence = refusal(&text).await;
            assert!(sentence.starts_with(begins), "{sentence}");
            assert!(!sentence.contains('\n'), "{sentence}");
        }
    }

    #[tokio::test]
    async fn a_valid_kubeconfig_is_loaded_with_kubes_retries_disabled() {
        let file = File::with(&kubeconfig("{server: \"https://127.0.0.1:6443\"}", "{token: t}"));
        let config = load_config(Some(&file.0), None).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://127.0.0.1:6443/");
        assert!(!config.default_retry && config.proxy_url.is_none() && config.root_cert_file.is_none());
    }

    #[tokio::test]
    async fn the_proxy_of_the_kubeconfig_is_used_for_every_server_and_its_authority_is_a_file() {
        let ca = File::with(&CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem());
        let cluster = format!(
            "{{server: \"https://127.0.0.1:6443\", proxy-url: \"proxy:3128\", certificate-authority: {}}}",
            ca.0.display()
        );
        let file = File::with(&kubeconfig(&cluster, "{}"));
        let config = load_config(Some(&file.0), None).await.unwrap();
        assert_eq!(config.proxy_url.unwrap().to_string(), "http://proxy:3128/");
        assert_eq!(config.root_cert_file.as_ref(), Some(&ca.0));
        let socks = File::with(&kubeconfig(&cluster.replace("proxy:3128", "socks5h://u:p@proxy"), "{}"));
        let config_of_socks = load_config(Some(&socks.0), None).await.unwrap();
        assert_eq!(config_of_socks.proxy_url.unwrap().to_string(), "socks5h://u:p@proxy/");
        let master = "https://api.example".parse().unwrap();
        let config = load_config(Some(&file.0), Some(master)).await.unwrap();
        assert_eq!(config.cluster_url.to_string(), "https://api.example/");
    }

    #[tokio::test]
    async fn without_a_kubeconfig_the_in_cluster_configuration_is_used() {
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
            let sentence = load_config(None, None).await.unwrap_err().to_string();
            assert_eq!(
                sentence,
                "no --kubeconfig was given and this process does not run in a pod (KUBERNETES_SERVICE_HOST is not set): give --kubeconfig=FILE"
            );
        }
    }
}
