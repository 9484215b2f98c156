//! The HTTPS port of a program that runs a manager itself, as the sandbox does.

use std::sync::Arc;

use kcm_config::Effective;
use kcm_framework::clock::{Clock as _, SystemClock};
use kcm_framework::{Manager, Stop, error_chain};
use kcm_serving::{Bound, ServingOptions, ServingState};
use serde_json::json;

use super::profiler::profiler;

/// The HTTPS port of a program that runs a manager itself, such as a sub-command.
///
/// Unless settings say otherwise, it listens on a free port of 127.0.0.1, serves the status page, and shows everything
/// to every user, because such a program does not distinguish users.
pub struct HttpsPort {
    bound: Bound,
    has_page: bool,
    settings: Effective,
}

impl HttpsPort {
    /// Binds the port; `None` for `--secure-port=0`.
    ///
    /// # Errors
    /// Every reason why it cannot be served.
    pub fn bind(settings: &Effective) -> Result<Option<Self>, Vec<String>> {
        let Some(options) = ServingOptions::standalone(settings)? else { return Ok(None) };
        let has_page = options.has_page;
        let bound = Bound::bind(options, Arc::new(SystemClock)).map_err(|error| vec![error_chain(&error)])?;
        Ok(Some(Self { bound, has_page, settings: settings.clone() }))
    }

    /// The address, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.bound.address())
    }

    /// The URL of the status page, if it is served.
    #[must_use]
    pub fn page(&self) -> Option<String> {
        self.has_page.then(|| format!("{}/debug/ui", self.url()))
    }

    /// Serves the state of `manager` until `stop`.
    ///
    /// # Errors
    /// The reason why it cannot be served.
    pub fn serve(
        self,
        manager: &Manager,
        stop: Stop,
    ) -> impl Future<Output = Result<(), String>> + Send + 'static + use<> {
        let profiler = profiler(&self.settings);
        let state = ServingState {
            settings: self.settings,
            metrics: Arc::clone(manager.metrics()),
            manager: manager.handle(),
            live: Vec::new(),
            ready: Vec::new(),
            leases: Box::new(|| json!([])),
            profiler,
            started: SystemClock.now(),
            set_verbosity: Box::new(|_| {}),
        };
        let bound = self.bound;
        async move {
            let mut serving = bound.serve(state, 0).await.map_err(|error| error_chain(&error))?;
            tokio::select! {
                biased;
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
        f.debug_struct("HttpsPort").field("address", &self.bound.address()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kcm_config::{Loaded, Sources, Table, generic};

    use super::*;

    fn settings(arguments: &[&str]) -> Effective {
        let table = Table::new(generic::rows()).expect("the rows make a table");
        match table.load(&Sources::default().arguments(arguments.iter().copied())) {
            Ok(Loaded::Settings(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    fn bound(arguments: &[&str]) -> Option<HttpsPort> {
        HttpsPort::bind(&settings(arguments)).expect("it is supported")
    }

    #[test]
    fn a_free_port_of_this_machine_is_served_with_the_page_unless_settings_say_otherwise() {
        let port = bound(&[]).expect("it is served");
        assert!(port.url().starts_with("https://127.0.0.1:") && !port.url().ends_with(":10257"), "{port:?}");
        assert_eq!(port.page(), Some(format!("{}/debug/ui", port.url())));
        assert!(bound(&["--secure-port=0"]).is_none());
        assert_eq!(bound(&["--debug-ui=false"]).expect("it is served").page(), None);
    }

    #[test]
    fn the_address_of_settings_is_bound() {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = free.expect("a port is free").port();
        let asked_for = [format!("--secure-port={port}"), "--bind-address=127.0.0.1".to_owned()];
        let asked_for: Vec<&str> = asked_for.iter().map(String::as_str).collect();
        let served = bound(&asked_for).expect("it is served");
        assert_eq!(served.url(), format!("https://127.0.0.1:{port}"));
        let refused = HttpsPort::bind(&settings(&asked_for)).expect_err("the port is taken");
        assert!(refused[0].starts_with(&format!("cannot listen on 127.0.0.1:{port} for HTTPS")), "{refused:?}");
    }
}
