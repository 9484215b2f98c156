//! The proxy rules of the environment.

use std::net::IpAddr;

/// The proxy variables of the environment.
///
/// # Upstream
/// Go's `httpproxy`, which client-go follows: upper case before lower case, never for localhost, and `NO_PROXY`
/// lists hosts, domains (with their subdomains), addresses, networks and `*`, each but the last with an optional port.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    https_proxy: String,
    no_proxy: String,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        let variable = |upper: &str, lower: &str| {
            let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            read(upper).or_else(|| read(lower)).unwrap_or_default()
        };
        Self { https_proxy: variable("HTTPS_PROXY", "https_proxy"), no_proxy: variable("NO_PROXY", "no_proxy") }
    }

    /// The proxy for that host, if any.
    pub(crate) fn proxy_for(&self, host: &str, port: Option<u16>) -> Option<String> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        if self.https_proxy.is_empty() || is_here {
            return None;
        }
        let port = port.unwrap_or(443);
        let mut exceptions = self.no_proxy.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        let excepted = exceptions.any(|entry| matches(&entry, &host, address, port));
        (!excepted).then(|| self.https_proxy.clone())
    }
}

fn matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry.is_empty() {
        return false;
    }
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let (Ok(network), Ok(bits), Some(address)) = (network.parse(), bits.parse(), address) else { return false };
        return is_within(address, network, bits);
    }
    if let Ok(listed) = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return address == Some(listed);
    }
    let (name, listed_port) = match entry.rsplit_once(':') {
        Some((name, listed)) => (name.trim_start_matches('[').trim_end_matches(']'), listed.parse().ok()),
        None => (entry, Some(port)),
    };
    if listed_port != Some(port) {
        return false;
    }
    if let Ok(listed) = name.parse::<IpAddr>() {
        return address == Some(listed);
    }
    let domain = name.trim_start_matches('*').trim_start_matches('.');
    let is_below = host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    // A leading dot means subdomains only.
    is_below || (!name.starts_with(['.', '*']) && host == domain)
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32_u32.saturating_sub(bits);
            bits <= 32 && u64::from(address.to_bits()) >> shift == u64::from(network.to_bits()) >> shift
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let kept = |address: u128| if bits == 0 { 0 } else { address >> (128 - bits.min(128)) };
            bits <= 128 && kept(address.to_bits()) == kept(network.to_bits())
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_read_as_go_reads_them() {
        for (no_proxy, host, port, proxied) in [
            ("", "api.example", None, true),
            ("", "localhost", Some(6443), false),
            ("", "127.0.0.1", Some(6443), false),
            ("", "[::1]", Some(6443), false),
            ("*", "api.example", None, false),
            ("api.example", "api.example", None, false),
            ("example", "api.example", None, false),
            (".example", "api.example", None, false),
            (".api.example", "api.example", None, true),
            ("ample", "api.example", None, true),
            ("other, API.example", "api.example", None, false),
            ("api.example:6443", "api.example", Some(6443), false),
            ("api.example:6443", "api.example", None, true),
            ("10.0.0.0/8", "10.1.2.3", None, false),
            ("10.0.0.0/8", "11.1.2.3", None, true),
            ("10.1.2.3", "10.1.2.3", None, false),
            ("10.1.2.3:443", "10.1.2.3", None, false),
            ("fd00::/8", "[fd12::1]", None, false),
            ("0.0.0.0/0", "10.1.2.3", None, false),
        ] {
            let environment = Environment { https_proxy: "http://p".to_owned(), no_proxy: no_proxy.to_owned() };
            assert_eq!(environment.proxy_for(host, port).is_some(), proxied, "NO_PROXY={no_proxy} for {host}");
        }
        assert_eq!(Environment::default().proxy_for("api.example", None), None);
    }
}
