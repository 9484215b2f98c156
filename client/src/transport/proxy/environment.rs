//! The proxy that the environment names for a server. Pure.

use std::net::IpAddr;

use http::Uri;

/// The proxy variables of the environment.
///
/// # Upstream
/// `golang.org/x/net/http/httpproxy`, which client-go follows: of each variable upper case before lower case, and empty
/// as if it were not set; `HTTPS_PROXY` for `https` and `HTTP_PROXY` for `http`; none for localhost and loopback
/// addresses. `NO_PROXY` lists addresses, networks, hosts with their subdomains, subdomains alone (`.example`,
/// `*.example`), each but networks with an optional port, and `*`. What cannot be read in it is left out.
#[derive(Debug, Default, Clone)]
pub(crate) struct Environment {
    https_proxy: String,
    http_proxy: String,
    no_proxy: String,
    /// Whether the process is a CGI program: headers of its request can set `HTTP_PROXY`.
    is_cgi: bool,
}

/// A proxy of the environment, with the variable that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// Name of the environment variable.
    pub(crate) variable: &'static str,
    /// Value of the environment variable.
    pub(crate) address: String,
}

/// `HTTP_PROXY` is set by a client of a web server, and is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not used where REQUEST_METHOD is set, as in a CGI program: unset one of the two")]
pub(crate) struct SetByClient;

impl Environment {
    /// The environment of this process.
    pub(crate) fn of_process() -> Self {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| variable(name).filter(|value| !value.is_empty());
        let either = |upper: &str, lower: &str| read(upper).or_else(|| read(lower)).unwrap_or_default();
        Self {
            https_proxy: either("HTTPS_PROXY", "https_proxy"),
            http_proxy: either("HTTP_PROXY", "http_proxy"),
            no_proxy: either("NO_PROXY", "no_proxy"),
            is_cgi: read("REQUEST_METHOD").is_some(),
        }
    }

    /// The proxy for a server, if any.
    ///
    /// # Errors
    /// If a client of a web server may have set the variable that names the proxy.
    pub(crate) fn proxy_for(&self, server: &Uri) -> Result<Option<Named>, SetByClient> {
        let is_http = server.scheme_str() == Some("http");
        let (variable, address, default_port) =
            if is_http { ("HTTP_PROXY", &self.http_proxy, 80) } else { ("HTTPS_PROXY", &self.https_proxy, 443) };
        if address.is_empty() {
            return Ok(None);
        }
        if is_http && self.is_cgi {
            return Err(SetByClient);
        }
        let host = server.host().unwrap_or_default();
        let is_proxied = self.proxies(host, server.port_u16().unwrap_or(default_port));
        Ok(is_proxied.then(|| Named { variable, address: address.clone() }))
    }

    fn proxies(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse().ok().map(|address: IpAddr| address.to_canonical());
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return false;
        }
        let host = host.to_ascii_lowercase();
        let mut exceptions = self.no_proxy.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        !exceptions.any(|entry| matches(&entry, &host, address, port))
    }
}

fn matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = cidr(entry) {
        return address.is_some_and(|address| is_within(address, network, bits));
    }
    let (name, listed_port) = split_port(entry).unwrap_or((entry, ""));
    if !listed_port.is_empty() && listed_port != port.to_string() {
        return false;
    }
    if let Ok(listed) = name.parse::<IpAddr>() {
        return address == Some(listed.to_canonical());
    }
    // A name never matches an address.
    if name.is_empty() || address.is_some() {
        return false;
    }
    let name = if name.starts_with("*.") { &name[1..] } else { name };
    match name.strip_prefix('.') {
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// Host and port of `host:port` or `[address]:port`; a host with several colons is an address without a port.
fn split_port(entry: &str) -> Option<(&str, &str)> {
    let (host, port) = entry.rsplit_once(':')?;
    if let Some(address) = host.strip_prefix('[') {
        return Some((address.strip_suffix(']')?, port));
    }
    (!host.contains([':', '[', ']'])).then_some((host, port))
}

fn cidr(entry: &str) -> Option<(IpAddr, u32)> {
    let (network, bits) = entry.split_once('/')?;
    let (network, bits) = (network.parse::<IpAddr>().ok()?, bits.parse::<u32>().ok()?);
    let length = if network.is_ipv4() { 32 } else { 128 };
    (bits <= length).then_some((network, bits))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let shift = 32_u32.saturating_sub(bits);
            u64::from(address.to_bits()) >> shift == u64::from(network.to_bits()) >> shift
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let kept = |address: u128| address.checked_shr(128_u32.saturating_sub(bits)).unwrap_or(0);
            kept(address.to_bits()) == kept(network.to_bits())
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::of(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// Returns the proxy of a server if these variables are set.
    fn proxy(variables: &[(&str, &str)], server: &str) -> Result<Option<String>, SetByClient> {
        let named = environment(variables).proxy_for(&server.parse().unwrap())?;
        Ok(named.map(|named| named.address))
    }

    #[test]
    fn a_variable_is_that_of_the_scheme_and_upper_case_comes_first() {
        let https = ("HTTPS_PROXY", "s");
        let http = ("HTTP_PROXY", "h");
        for (variables, server, expected) in [
            (&[https, http][..], "https://api.example", Some("s")),
            (&[https, http], "http://api.example", Some("h")),
            (&[http], "https://api.example", None),
            (&[https], "http://api.example", None),
            (&[("https_proxy", "l")], "https://api.example", Some("l")),
            (&[("https_proxy", "l"), https], "https://api.example", Some("s")),
            (&[("https_proxy", "l"), ("HTTPS_PROXY", "")], "https://api.example", Some("l")),
            (&[https, ("no_proxy", "*")], "https://api.example", None),
            (&[https, ("no_proxy", "*"), ("NO_PROXY", "other")], "https://api.example", Some("s")),
            (&[], "https://api.example", None),
            (&[https, ("REQUEST_METHOD", "GET")], "https://api.example", Some("s")),
        ] {
            assert_eq!(proxy(variables, server), Ok(expected.map(str::to_owned)), "{variables:?} for {server}");
        }
    }

    #[test]
    fn the_variable_that_a_web_server_passes_on_is_refused() {
        let variables = [("HTTP_PROXY", "h"), ("REQUEST_METHOD", "GET")];
        assert_eq!(proxy(&variables, "http://api.example"), Err(SetByClient));
    }

    #[test]
    fn exceptions_are_read_as_go_reads_them() {
        for (no_proxy, server, is_proxied) in [
            ("", "https://api.example", true),
            ("", "https://localhost:6443", false),
            ("", "https://127.0.0.1:6443", false),
            ("", "https://127.9.9.9", false),
            ("", "https://[::1]", false),
            ("", "https://[::ffff:127.0.0.1]", false),
            ("", "https://localhost.example", true),
            ("*", "https://api.example", false),
            ("other,*", "https://10.1.2.3", false),
            ("api.example", "https://api.example", false),
            ("example", "https://api.example", false),
            (".example", "https://api.example", false),
            ("*.example", "https://api.example", false),
            (".api.example", "https://api.example", true),
            ("*.api.example", "https://api.example", true),
            ("*api.example", "https://api.example", true),
            ("ample", "https://api.example", true),
            (" other , API.example ", "https://API.Example", false),
            ("api.example:6443", "https://api.example:6443", false),
            ("api.example:6443", "https://api.example", true),
            ("api.example:443", "https://api.example", false),
            ("api.example:80", "http://api.example", false),
            ("api.example:", "https://api.example", false),
            ("api.example:https", "https://api.example", true),
            (".example:443", "https://api.example", false),
            ("10.0.0.0/8", "https://10.1.2.3", false),
            ("10.0.0.0/8", "https://11.1.2.3", true),
            ("10.0.0.0/8", "https://10.example", true),
            ("10.0.0.0/33", "https://10.0.0.0", true),
            ("10.1.2.3", "https://10.1.2.3", false),
            ("10.1.2", "https://10.1.2.3", true),
            ("10.1.2.3:443", "https://10.1.2.3", false),
            ("10.1.2.3:443", "https://10.1.2.3:6443", true),
            ("2.3", "https://10.1.2.3", true),
            ("fd00::/8", "https://[fd12::1]", false),
            ("fd00::/8", "https://[fe00::1]", true),
            ("fd12::1", "https://[fd12::1]", false),
            ("[fd12::1]:443", "https://[fd12::1]", false),
            ("[fd12::1]:6443", "https://[fd12::1]", true),
            ("[fd12::1]", "https://[fd12::1]", true),
            ("::ffff:10.1.2.3", "https://10.1.2.3", false),
            ("0.0.0.0/0", "https://10.1.2.3", false),
            ("::/0", "https://[fd12::1]", false),
            (",,", "https://api.example", true),
            (":443", "https://api.example", true),
        ] {
            let found = proxy(&[("HTTPS_PROXY", "p"), ("HTTP_PROXY", "p"), ("NO_PROXY", no_proxy)], server);
            assert_eq!(found.map(|proxy| proxy.is_some()), Ok(is_proxied), "NO_PROXY={no_proxy} for {server}");
        }
    }
}
