//! Credentials that a program returns: an exec plugin of client-go.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use super::exec_metrics::{ExecPluginMetrics, OfPlugin};
use super::{ClientCertificate, Current, bearer};
use crate::clock::Clock;

/// Time for which a plugin may run.
///
/// # Upstream
/// There is no limit.
const LIMIT: Duration = Duration::from_mins(1);

/// The versions of the protocol.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// An exec plugin.
///
/// # Guarantees
/// - It runs when a request needs credentials and there are none, or they have expired, or the API server has refused
///   them. It runs once for all requests that wait for it, and continues if one of them is cancelled.
/// - It is killed after a minute, and when the client that it runs for is dropped.
/// - It has no terminal.
/// - A panic while its output is read fails the requests that wait for it, and no later request.
pub(in super::super) struct ExecPlugin {
    call: Call,
    clock: Arc<dyn Clock>,
    metrics: Arc<OfPlugin>,
    state: Mutex<State>,
}

/// The command line of the plugin, and its environment.
#[derive(Debug, Clone)]
struct Call {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    version: String,
    install_hint: Option<String>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    running: Option<Run>,
}

type Run = Shared<BoxFuture<'static, Result<Held, Arc<ExecError>>>>;

#[derive(Clone)]
struct Held {
    current: Current,
    /// `None` if the plugin returned no time.
    expires: Option<Instant>,
}

/// An exec plugin that cannot be called.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum ExecConfigError {
    #[error("`exec` of the user has no `command`")]
    NoCommand,
    #[error("`exec` of the user has the version {0:?}: give `apiVersion: client.authentication.k8s.io/v1`")]
    Version(String),
    #[error("`exec` of the user has `interactiveMode: Always`, and there is no terminal: use IfAvailable or Never")]
    Interactive,
    #[error("`exec` of the user has `provideClusterInfo`, and the cluster cannot be written as JSON")]
    Cluster(#[source] serde_json::Error),
}

/// An exec plugin that returned no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecError {
    #[error("the exec plugin {command} cannot be started{hint}")]
    Start {
        command: String,
        hint: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the exec plugin {command} was killed after {} s", LIMIT.as_secs())]
    Limit { command: String },
    #[error("the exec plugin {command} ended with {status}{message}")]
    Failed { command: String, status: std::process::ExitStatus, message: String },
    #[error("the exec plugin {command} did not print an ExecCredential")]
    Unreadable {
        command: String,
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    #[error("the exec plugin {command} printed an ExecCredential that cannot be used: {reason}")]
    Unusable { command: String, reason: String },
    #[error("a panic ended the run of the exec plugin {command}: {message}")]
    Panicked { command: String, message: String },
}

/// The output of a plugin.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: String,
    client_certificate_data: String,
    client_key_data: String,
}

impl ExecPlugin {
    pub(super) fn new(
        config: &ExecConfig,
        clock: Arc<dyn Clock>,
        metrics: &ExecPluginMetrics,
    ) -> Result<Self, ExecConfigError> {
        let command = config.command.clone().filter(|command| !command.is_empty()).ok_or(ExecConfigError::NoCommand)?;
        let version = config.api_version.clone().unwrap_or_default();
        if !VERSIONS.contains(&version.as_str()) {
            return Err(ExecConfigError::Version(version));
        }
        if config.interactive_mode == Some(ExecInteractiveMode::Always) {
            return Err(ExecConfigError::Interactive);
        }
        let mut spec = json!({ "interactive": false });
        if let Some(cluster) = config.cluster.as_ref().filter(|_| config.provide_cluster_info) {
            spec["cluster"] = serde_json::to_value(cluster).map_err(ExecConfigError::Cluster)?;
        }
        let info = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec });
        let named = config.env.iter().flatten().filter_map(|variable| {
            Some((variable.get("name")?.clone(), variable.get("value").cloned().unwrap_or_default()))
        });
        let env = named.chain([("KUBERNETES_EXEC_INFO".to_owned(), info.to_string())]).collect();
        let args = config.args.clone().unwrap_or_default();
        let call = Call { command, args, env, version, install_hint: config.install_hint.clone() };
        Ok(Self { call, clock, metrics: Arc::new(metrics.of_plugin()), state: Mutex::default() })
    }

    /// Returns the credentials. Runs the plugin if there are no valid ones.
    pub(super) async fn current(&self) -> Result<Current, Arc<ExecError>> {
        let run = {
            let mut state = self.state.lock();
            if let Some(held) = state.held.as_ref().filter(|held| held.is_valid_at(Instant::now())) {
                return Ok(held.current.clone());
            }
            let start = || {
                let run = run(self.call.clone(), Arc::clone(&self.clock), Arc::clone(&self.metrics));
                let command = self.call.command.clone();
                // A shared future that has panicked panics again for each request that waits for it.
                let caught = AssertUnwindSafe(run).catch_unwind();
                caught.map(|run| run.unwrap_or_else(|panic| Err(Arc::new(panicked(command, &*panic))))).boxed().shared()
            };
            state.running.get_or_insert_with(start).clone()
        };
        let result = run.clone().await;
        let mut state = self.state.lock();
        if state.running.as_ref().is_some_and(|running| running.ptr_eq(&run)) {
            state.running = None;
            if let Ok(held) = &result {
                state.held = Some(held.clone());
            }
        }
        result.map(|held| held.current)
    }

    /// Forgets credentials that the API server has refused, unless there are others already.
    pub(super) fn refused(&self, used: &Current) {
        self.state.lock().held.take_if(|held| held.current == *used);
    }
}

impl Held {
    fn is_valid_at(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

async fn run(call: Call, clock: Arc<dyn Clock>, metrics: Arc<OfPlugin>) -> Result<Held, Arc<ExecError>> {
    let mut command = Command::new(&call.command);
    command.args(&call.args).envs(call.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = match timeout(LIMIT, command.output()).await {
        Err(_) => {
            metrics.ended(None);
            return Err(Arc::new(ExecError::Limit { command: call.command }));
        }
        Ok(Err(source)) => {
            metrics.not_started();
            let hint = call.install_hint.map_or_else(String::new, |hint| format!(" ({})", hint.trim()));
            return Err(Arc::new(ExecError::Start { command: call.command, hint, source }));
        }
        Ok(Ok(output)) => output,
    };
    metrics.ended(Some(output.status));
    let wall = clock.now();
    let held = read(&call, &output, wall, Instant::now())?;
    metrics.returned(held.current.certificate.as_ref(), wall);
    Ok(held)
}

fn panicked(command: String, panic: &(dyn Any + Send)) -> ExecError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    ExecError::Panicked { command, message: text.unwrap_or("no message").to_owned() }
}

/// The credentials that a plugin has printed.
fn read(call: &Call, output: &Output, wall: Timestamp, now: Instant) -> Result<Held, ExecError> {
    let command = call.command.clone();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let message = said.trim().lines().next_back().map_or_else(String::new, |line| format!(": {line}"));
        return Err(ExecError::Failed { command, status: output.status, message });
    }
    let printed: ExecCredential = match serde_saphyr::from_slice(&output.stdout) {
        Ok(printed) => printed,
        Err(source) => return Err(ExecError::Unreadable { command, source: Box::new(source) }),
    };
    let unusable = |reason: String| ExecError::Unusable { command: call.command.clone(), reason };
    if printed.api_version != call.version {
        return Err(unusable(format!("it has the version {:?} instead of {:?}", printed.api_version, call.version)));
    }
    let Some(status) = printed.status else { return Err(unusable("it has no status".to_owned())) };
    let Status { expiration_timestamp, token, client_certificate_data, client_key_data } = status;
    let certificate = match (client_certificate_data.is_empty(), client_key_data.is_empty()) {
        (true, true) if token.is_empty() => {
            return Err(unusable("it has neither a token nor a client certificate".to_owned()));
        }
        (true, true) => None,
        (false, false) => Some(Arc::new(ClientCertificate {
            certificate: STANDARD.encode(client_certificate_data),
            key: STANDARD.encode(client_key_data),
        })),
        (true, false) | (false, true) => {
            return Err(unusable("it has a client certificate or its key, and not both".to_owned()));
        }
    };
    let header = if token.is_empty() { None } else { Some(bearer(&token).map_err(|why| unusable(why.to_string()))?) };
    let expires = expiration_timestamp.map(|at| {
        let left = Duration::try_from(at.duration_since(wall)).unwrap_or_default();
        // Beyond the range of the clock it never expires.
        now.checked_add(left)
    });
    Ok(Held { current: Current { header, certificate }, expires: expires.flatten() })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;
    use crate::clock::SimulatedClock;

    const V1: &str = "client.authentication.k8s.io/v1";

    fn clock() -> Arc<dyn Clock> {
        Arc::new(SimulatedClock::starting_at("2030-01-01T00:00:00Z".parse().unwrap()))
    }

    /// A plugin that runs a script of the shell.
    fn shell(script: &str) -> ExecConfig {
        ExecConfig {
            api_version: Some(V1.to_owned()),
            command: Some("/bin/sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script.to_owned()]),
            ..ExecConfig::default()
        }
    }

    fn plugin(config: &ExecConfig) -> ExecPlugin {
        ExecPlugin::new(config, clock(), &ExecPluginMetrics::default()).unwrap()
    }

    async fn header(plugin: &ExecPlugin) -> String {
        let header = plugin.current().await.unwrap().header.unwrap();
        header.to_str().unwrap().to_owned()
    }

    async fn error(config: &ExecConfig) -> String {
        let error = plugin(config).current().await.map(drop).unwrap_err();
        crate::error::error_chain(&error)
    }

    /// A script that counts its runs in `file`, and returns the count as a token that expires at `expires`.
    fn counting(file: &std::path::Path, expires: &str) -> ExecConfig {
        let file = file.display();
        shell(&format!(
            r#"echo run >> {file}; printf '{{"apiVersion":"{V1}","status":{{"token":"%d","expirationTimestamp":"{expires}"}}}}' $(wc -l < {file})"#
        ))
    }

    #[tokio::test]
    async fn it_runs_once_until_its_credentials_expire_or_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let lasting = plugin(&counting(&folder.path().join("a"), "2030-01-01T01:00:00Z"));
        let (one, two) = tokio::join!(header(&lasting), header(&lasting));
        assert_eq!([one.as_str(), two.as_str()], ["Bearer 1"; 2], "one run serves both");
        assert_eq!(header(&lasting).await, "Bearer 1");
        let used = lasting.current().await.unwrap();
        lasting.refused(&used);
        assert_eq!(header(&lasting).await, "Bearer 2");
        lasting.refused(&used);
        assert_eq!(header(&lasting).await, "Bearer 2", "others were refused");
        let expired = plugin(&counting(&folder.path().join("b"), "2029-12-31T23:59:59Z"));
        assert_eq!([header(&expired).await, header(&expired).await], ["Bearer 1", "Bearer 2"]);
    }

    #[tokio::test]
    async fn it_gets_its_arguments_and_its_environment() {
        let variable = |name: &str, value: &str| {
            [("name".to_owned(), name.to_owned()), ("value".to_owned(), value.to_owned())].into_iter().collect()
        };
        let script = r#"
            [ "$KUBERNETES_EXEC_INFO" = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}' ] || exit 3
            cat > /dev/null
            printf 'apiVersion: client.authentication.k8s.io/v1
kind: ExecCredential
status: {token: %s}' "$WHO""#;
        let mut config = shell(script);
        config.env = Some(vec![variable("WHO", "me")]);
        assert_eq!(header(&plugin(&config)).await, "Bearer me");
    }

    #[tokio::test]
    async fn a_run_goes_on_where_the_request_that_began_it_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (started, go_on) = (folder.path().join("started"), folder.path().join("go-on"));
        let script = format!(
            r#"echo run >> {}; while [ ! -e {} ]; do sleep 0.01; done; printf '{{"apiVersion":"{V1}","status":{{"token":"t"}}}}'"#,
            started.display(),
            go_on.display()
        );
        let plugin = plugin(&shell(&script));
        let has_started = async {
            while !started.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = plugin.current() => panic!("it waits"),
            () = has_started => {}
        }
        std::fs::write(&go_on, "").unwrap();
        assert_eq!(header(&plugin).await, "Bearer t");
        assert_eq!(std::fs::read_to_string(&started).unwrap(), "run\n");
    }

    /// A clock that panics once, when the output of the first run is read.
    #[derive(Debug, Default)]
    struct PanicsOnce(std::sync::atomic::AtomicBool);

    impl Clock for PanicsOnce {
        fn now(&self) -> Timestamp {
            assert!(self.0.swap(true, std::sync::atomic::Ordering::Relaxed), "as the test wants it");
            "2030-01-01T00:00:00Z".parse().unwrap()
        }
    }

    #[tokio::test]
    async fn a_panic_while_the_output_is_read_fails_one_run_alone() {
        let config = shell(&format!(r#"printf '{{"apiVersion":"{V1}","status":{{"token":"t"}}}}'"#));
        let clock = Arc::new(PanicsOnce::default());
        let plugin = ExecPlugin::new(&config, clock, &ExecPluginMetrics::default()).unwrap();
        let (one, two) = tokio::join!(plugin.current(), plugin.current());
        for failed in [one, two] {
            let error = failed.map(drop).unwrap_err().to_string();
            assert_eq!(error, "a panic ended the run of the exec plugin /bin/sh: as the test wants it");
        }
        assert_eq!(header(&plugin).await, "Bearer t", "the next request runs it again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_hangs_is_killed_after_a_minute() {
        let began = Instant::now();
        assert_eq!(error(&shell("sleep 600")).await, "the exec plugin /bin/sh was killed after 60 s");
        assert_eq!(began.elapsed(), LIMIT);
    }

    #[tokio::test]
    async fn a_plugin_without_credentials_is_named_with_its_reason() {
        let missing = ExecConfig {
            command: Some("/nowhere/login".to_owned()),
            install_hint: Some("install it from example.com\n".to_owned()),
            ..shell("")
        };
        let missing = error(&missing).await;
        let begins = "the exec plugin /nowhere/login cannot be started (install it from example.com): ";
        assert!(missing.starts_with(begins), "{missing}");
        for (script, ends) in [
            ("echo first >&2; echo no session >&2; exit 2", "ended with exit status: 2: no session"),
            ("exit 2", "ended with exit status: 2"),
            ("echo '{}'", "did not print an ExecCredential"),
            ("echo '['", "did not print an ExecCredential"),
        ] {
            let error = error(&shell(script)).await;
            assert!(error.starts_with(&format!("the exec plugin /bin/sh {ends}")), "{error}");
        }
    }

    fn printed(status: &str) -> Result<Held, String> {
        let call = plugin(&shell("")).call;
        let stdout = format!(r#"{{"apiVersion":"{V1}","status":{status}}}"#).into_bytes();
        let output = Output { status: ExitStatus::from_raw(0), stdout, stderr: Vec::new() };
        read(&call, &output, "2030-01-01T00:00:00Z".parse().unwrap(), Instant::now())
            .map_err(|error| error.to_string().rsplit(": ").next().unwrap_or_default().to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_have_a_token_or_a_certificate_with_its_key() {
        let now = Instant::now();
        let token = printed(r#"{"token":"t","expirationTimestamp":"2030-01-01T00:01:00Z"}"#).unwrap();
        assert!(token.current.certificate.is_none());
        assert!(token.is_valid_at(now + Duration::from_secs(59)) && !token.is_valid_at(now + Duration::from_mins(1)));
        let both = printed(r#"{"token":"t","clientCertificateData":"C","clientKeyData":"K"}"#).unwrap();
        let certificate = both.current.certificate.clone().unwrap();
        assert_eq!((certificate.certificate.as_str(), certificate.key.as_str()), ("Qw==", "Sw=="));
        assert!(both.is_valid_at(now + Duration::from_hours(1_000_000)), "it never expires");
        for (status, reason) in [
            ("null", "it has no status"),
            ("{}", "it has neither a token nor a client certificate"),
            (r#"{"clientKeyData":"K"}"#, "it has a client certificate or its key, and not both"),
            (r#"{"token":"a\nb"}"#, "the token holds a line break or another control character"),
        ] {
            assert_eq!(printed(status).map(drop), Err(reason.to_owned()), "{status}");
        }
    }

    #[test]
    fn a_plugin_that_cannot_be_called_is_refused_at_start() {
        let refused = |config: ExecConfig| match ExecPlugin::new(&config, clock(), &ExecPluginMetrics::default()) {
            Ok(_) => panic!("it is taken"),
            Err(error) => error.to_string(),
        };
        assert!(refused(ExecConfig { command: None, ..shell("") }).contains("no `command`"));
        let old = "client.authentication.k8s.io/v1alpha1";
        assert!(refused(ExecConfig { api_version: Some(old.to_owned()), ..shell("") }).contains(old));
        let always = Some(ExecInteractiveMode::Always);
        assert!(refused(ExecConfig { interactive_mode: always, ..shell("") }).contains("no terminal"));
    }
}
