//! The HTTPS port of a program that runs a manager itself, as the sandbox does.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use kcm_config::{Effective, Origin};
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{Manager, Stop, error_chain};

use super::access::AllowedPaths;
use super::options::ServingOptions;
use super::state::ServingState;
use super::thread::Bound;

/// The HTTPS port of a program that runs a manager itself, as a sub-command does.
///
/// It listens on 127.0.0.1 and shows everything to everyone there, unless settings say otherwise: such a program has no
/// users to tell apart.
pub struct HttpsPort {
    options: ServingOptions,
    settings: Effective,
}

impl HttpsPort {
    /// The port that `settings` ask for; `None` where no source names one.
    ///
    /// # Errors
    /// Every reason why it cannot be served.
    pub fn asked_for(settings: &Effective) -> Result<Option<Self>, Vec<String>> {
        let is_default = |flag| settings.origin(flag).is_none_or(|origin| *origin == Origin::Default);
        let Some(mut options) = ServingOptions::of(settings)?.filter(|_| !is_default("secure-port")) else {
            return Ok(None);
        };
        if is_default("bind-address") {
            options.address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        if is_default("authorization-always-allow-paths") {
            options.authorization.always_allow = AllowedPaths::read(&["/*".to_owned()])?;
        }
        Ok(Some(Self { options, settings: settings.clone() }))
    }

    /// The address, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.options.address)
    }

    /// Serves the port until `stop`, with what `manager` shows.
    ///
    /// # Errors
    /// The reason why it cannot be served.
    pub fn serve(
        self,
        manager: &Manager,
        stop: Stop,
    ) -> impl Future<Output = Result<(), String>> + Send + 'static + use<> {
        let state = ServingState {
            settings: self.settings,
            metrics: Arc::clone(manager.metrics()),
            manager: manager.handle(),
            live: Vec::new(),
            ready: Vec::new(),
            started: SystemClock.now(),
            set_verbosity: Box::new(|_| {}),
        };
        let options = self.options;
        async move {
            let bound = Bound::bind(options, Arc::new(SystemClock)).map_err(|error| error_chain(&error))?;
            let mut serving = bound.serve(state, 0).await.map_err(|error| error_chain(&error))?;
            tokio::select! {
                () = stop.drain.cancelled() => {}
                error = serving.failed() => return Err(error_chain(&error)),
            }
            serving.stop().await;
            Ok(())
        }
    }
}

impl std::fmt::Debug for HttpsPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpsPort").field("address", &self.options.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::tests::settings;

    #[test]
    fn a_port_is_served_only_if_it_is_asked_for() {
        let asked_for = |arguments: &[&str]| HttpsPort::asked_for(&settings(arguments)).expect("it is supported");
        assert!(asked_for(&[]).is_none());
        assert!(asked_for(&["--secure-port=0"]).is_none());
        let url = |arguments| asked_for(arguments).map(|port| port.url());
        assert_eq!(url(&["--secure-port=7777"]).as_deref(), Some("https://127.0.0.1:7777"));
        assert_eq!(url(&["--secure-port=7777", "--bind-address=::1"]).as_deref(), Some("https://[::1]:7777"));
    }
}
