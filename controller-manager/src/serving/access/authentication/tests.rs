use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

use super::super::authorities::Authorities;
use super::*;

/// An authority, which signs certificates of clients.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        Self(CertifiedIssuer::self_signed(params, key).expect("it can be signed"))
    }

    fn trusted(&self) -> Arc<Authorities> {
        Arc::new(Authorities::read(self.0.pem().as_bytes()).expect("it is an authority"))
    }

    fn certify(&self, name: &str, groups: &[&str], usage: ExtendedKeyUsagePurpose) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.distinguished_name = DistinguishedName::new();
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.extended_key_usages = vec![usage];
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        let key = KeyPair::generate().expect("there is randomness");
        params.signed_by(&key, &self.0).expect("it can be signed").der().clone()
    }

    fn client(&self, name: &str) -> CertificateDer<'static> {
        self.certify(name, &["dev"], ExtendedKeyUsagePurpose::ClientAuth)
    }
}

fn at(time: &str) -> UnixTime {
    let time: jiff::Timestamp = time.parse().expect("it is a time");
    UnixTime::since_unix_epoch(Duration::try_from(time.as_duration()).expect("it is after 1970"))
}

/// Who proves what in the tests: clients, proxies that must be called `proxy`, and others that are not known.
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
        let trusted = Trusted { clients: Some(clients.trusted()), proxies: Some((proxies.trusted(), Arc::new(names))) };
        Self { clients, proxies, strangers: Authority::new(), trusted }
    }

    /// The name of the user, and how many reasons there are against the certificate.
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
    // The certificate is none of a proxy, which counts as a reason only if it proves no user at all.
    assert_eq!(world.identify(&world.clients.client("joe"), &[], NOW), (Some("joe".to_owned()), 1));
    // Only proxies name users.
    assert_eq!(world.identify(&world.clients.client("joe"), JANE, NOW), (Some("joe".to_owned()), 1));
    assert_eq!(world.identify(&world.strangers.client("joe"), &[], NOW), (None, 2));
    assert_eq!(world.identify(&world.clients.client("joe"), &[], "2028-01-01T00:00:00Z"), (None, 2));
    assert_eq!(world.identify(&world.clients.client(""), &[], NOW), (None, 1));
    let server = world.clients.certify("joe", &[], ExtendedKeyUsagePurpose::ServerAuth);
    assert_eq!(world.identify(&server, &[], NOW), (None, 2));
}

#[test]
fn a_proxy_names_users_if_it_may() {
    let world = World::new();
    assert_eq!(world.identify(&world.proxies.client("proxy"), JANE, NOW), (Some("jane".to_owned()), 0));
    assert_eq!(world.identify(&world.proxies.client("other"), JANE, NOW), (None, 2));
    // Without a user in the headers, its certificate has to count as that of a client.
    assert_eq!(world.identify(&world.proxies.client("proxy"), &[], NOW), (None, 1));
}

#[test]
fn without_authorities_no_certificate_counts_and_none_is_wrong() {
    let world = World { trusted: Trusted::default(), ..World::new() };
    assert_eq!(world.identify(&world.clients.client("joe"), JANE, NOW), (None, 0));
}
