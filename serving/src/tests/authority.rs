//! A CA for tests.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use rustls::pki_types::CertificateDer;

/// A CA that signs certificates of clients.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        Self(CertifiedIssuer::self_signed(params, key).expect("it can be signed"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of a user and its groups; an empty name is left out.
    pub(crate) fn certify(&self, name: &str, groups: &[&str]) -> CertificateDer<'static> {
        self.certify_with(name, groups, |_| {})
    }

    /// Like [`certify`](Self::certify), with changes to the certificate before it is signed.
    pub(crate) fn certify_with(
        &self,
        name: &str,
        groups: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::new()).expect("there are no names");
        params.distinguished_name = DistinguishedName::new();
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        change(&mut params);
        let key = KeyPair::generate().expect("there is randomness");
        params.signed_by(&key, &self.0).expect("it can be signed").der().clone()
    }
}
