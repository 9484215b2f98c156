use rcgen::ExtendedKeyUsagePurpose;

use super::super::authorities::Authorities;
use super::*;
use crate::tests::authority::Authority;

fn trusted(authority: &Authority) -> Arc<Authorities> {
    Arc::new(Authorities::read(authority.pem().as_bytes()).expect("it is an authority"))
}

fn certify(
    authority: &Authority,
    name: &str,
    groups: &[&str],
    usage: ExtendedKeyUsagePurpose,
) -> CertificateDer<'static> {
    authority.certify_with(name, groups, |params| {
        params.extended_key_usages = vec![usage];
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
    })
}

fn client(authority: &Authority, name: &str) -> CertificateDer<'static> {
    certify(authority, name, &["dev"], ExtendedKeyUsagePurpose::ClientAuth)
}

fn at(time: &str) -> UnixTime {
    let time: jiff::Timestamp = time.parse().expect("it is a time");
    UnixTime::since_unix_epoch(Duration::try_from(time.as_duration()).expect("it is after 1970"))
}

/// The CAs of the tests: of clients, of proxies that must be called `proxy`, and an unknown one.
struct World {
    clients: Authority,
    proxies: Authority,
    strangers: Authority,
    trusted: Trusted,
}

impl World {
    fn new() -> Self {
        let (clients, proxies) = (Authority::new(), Authority::new());
        let names = HeaderNames {
            username: vec!["X-Remote-User".to_owned()],
            group: vec!["X-Remote-Group".to_owned()],
            allowed_names: vec!["proxy".to_owned()],
            ..HeaderNames::default()
        };
        let trusted = Trusted { clients: Some(trusted(&clients)), proxies: Some((trusted(&proxies), Arc::new(names))) };
        Self { clients, proxies, strangers: Authority::new(), trusted }
    }

    /// Returns the name of the user, and the number of reasons against the certificate.
    fn identify(
        &self,
        certificate: &CertificateDer<'static>,
        headers: &[(&'static str, &'static str)],
        now: &str,
    ) -> (Option<String>, usize) {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        let mut reasons = Vec::new();
        let certificates = std::slice::from_ref(certificate);
        let user = by_certificate(&self.trusted, &headers.collect(), certificates, at(now), &mut reasons);
        (user.map(|user| user.name), reasons.len())
    }
}

const NOW: &str = "2026-01-02T03:04:05Z";
const JANE: &[(&str, &str)] = &[("x-remote-user", "jane"), ("x-remote-group", "ops")];

#[test]
fn a_certificate_names_its_user() {
    let world = World::new();
    // The certificate is not a proxy's, which counts as a reason only if it proves no user at all.
    assert_eq!(world.identify(&client(&world.clients, "joe"), &[], NOW), (Some("joe".to_owned()), 1));
    // Only proxies name users.
    assert_eq!(world.identify(&client(&world.clients, "joe"), JANE, NOW), (Some("joe".to_owned()), 1));
    assert_eq!(world.identify(&client(&world.strangers, "joe"), &[], NOW), (None, 2));
    assert_eq!(world.identify(&client(&world.clients, "joe"), &[], "2028-01-01T00:00:00Z"), (None, 2));
    assert_eq!(world.identify(&client(&world.clients, ""), &[], NOW), (None, 1));
    let server = certify(&world.clients, "joe", &[], ExtendedKeyUsagePurpose::ServerAuth);
    assert_eq!(world.identify(&server, &[], NOW), (None, 2));
}

#[test]
fn a_proxy_names_users_if_it_may() {
    let world = World::new();
    assert_eq!(world.identify(&client(&world.proxies, "proxy"), JANE, NOW), (Some("jane".to_owned()), 0));
    assert_eq!(world.identify(&client(&world.proxies, "other"), JANE, NOW), (None, 2));
    // Without a user in the headers, the proxy's certificate must count as a client's certificate.
    assert_eq!(world.identify(&client(&world.proxies, "proxy"), &[], NOW), (None, 1));
}

#[test]
fn without_authorities_no_certificate_counts_and_none_is_wrong() {
    let world = World { trusted: Trusted::default(), ..World::new() };
    assert_eq!(world.identify(&client(&world.clients, "joe"), JANE, NOW), (None, 0));
}
