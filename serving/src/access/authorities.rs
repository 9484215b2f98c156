//! The CAs that sign the certificates of clients.

use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{DistinguishedName, RootCertStore};

use super::user::User;
use crate::names::{self, Subject};

/// The key under which the certificate of a user stands among the user's attributes.
///
/// # Upstream
/// `CredentialIDKey` in `apiserver/pkg/authentication/user`.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A bundle of CAs, which verifies certificates of clients.
#[derive(Debug, Clone)]
pub(super) struct Authorities {
    pem: Vec<u8>,
    subjects: Vec<DistinguishedName>,
    verifier: Arc<dyn ClientCertVerifier>,
}

/// An error in a bundle of CAs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// It is not PEM.
    #[error("it is not PEM")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// The bundle contains no certificate that can be used.
    #[error("it contains no certificate that can be used")]
    NoCertificate,
    /// A certificate cannot be used as a CA.
    #[error("one of its certificates cannot be used")]
    Certificate(#[from] rustls::Error),
    /// The bundle cannot be made a verifier.
    #[error("it cannot be used")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl Authorities {
    /// Reads a bundle in PEM.
    ///
    /// # Errors
    /// If the bundle contains no certificate, or a certificate that cannot be used.
    pub(super) fn read(pem: &[u8]) -> Result<Self, BundleError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate?)?;
        }
        if roots.is_empty() {
            return Err(BundleError::NoCertificate);
        }
        let subjects = roots.subjects();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { pem: pem.to_vec(), subjects, verifier })
    }

    /// Returns `true` if the bundle was read from this text.
    pub(super) fn are(&self, pem: &[u8]) -> bool {
        self.pem == pem
    }

    /// The names of the CAs.
    pub(super) fn subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    /// Verifies the first certificate, which the following certificates may link to a CA, and returns its subject.
    ///
    /// # Errors
    /// The reason why it does not count.
    pub(super) fn verify(&self, certificates: &[CertificateDer<'_>], now: UnixTime) -> Result<Subject, String> {
        let Some((certificate, intermediates)) = certificates.split_first() else {
            return Err("there is no certificate".to_owned());
        };
        let verified = self.verifier.verify_client_cert(certificate, intermediates, now);
        verified.map_err(|error| format!("the certificate of the client is not valid: {error}"))?;
        let parsed = webpki::EndEntityCert::try_from(certificate).ok();
        let subject = parsed.and_then(|parsed| names::subject(parsed.subject()));
        subject.ok_or_else(|| "the subject of the certificate of the client cannot be read".to_owned())
    }
}

/// Returns the user that a verified certificate names, or `None` if it names none.
///
/// # Errors
/// If the certificate has several UIDs.
///
/// # Upstream
/// `CommonNameUserConversion` in `apiserver/pkg/authentication/request/x509`.
pub(super) fn user_of(subject: Subject, certificate: &CertificateDer<'_>) -> Result<Option<User>, String> {
    let Subject { common_name: name, organizations: groups, mut uids } = subject;
    if name.is_empty() {
        return Ok(None);
    }
    let uid = uids.pop().unwrap_or_default();
    if !uids.is_empty() {
        return Err("the certificate of the client has several UIDs".to_owned());
    }
    let hash = digest(&SHA256, certificate);
    let mut id = "X509SHA256=".to_owned();
    for byte in hash.as_ref() {
        // Writing to a string does not fail.
        let _written = write!(id, "{byte:02x}");
    }
    let extra = [(CREDENTIAL_ID.to_owned(), vec![id])].into();
    Ok(Some(User { name, uid, groups, extra }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        assert!(matches!(Authorities::read(b""), Err(BundleError::NoCertificate)));
        assert!(matches!(Authorities::read(b"text\n"), Err(BundleError::NoCertificate)));
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(Authorities::read(broken), Err(BundleError::Certificate(_))));
    }

    #[test]
    fn a_certificate_without_a_common_name_names_no_user() {
        let certificate = CertificateDer::from(vec![1]);
        assert_eq!(user_of(Subject::default(), &certificate), Ok(None));
        let subject = |uids: &[&str]| Subject {
            common_name: "jane".to_owned(),
            organizations: vec!["dev".to_owned()],
            uids: uids.iter().map(ToString::to_string).collect(),
        };
        let user = user_of(subject(&["7"]), &certificate).expect("it is valid").expect("it has a name");
        assert_eq!((user.name.as_str(), user.uid.as_str(), &user.groups[..]), ("jane", "7", &["dev".to_owned()][..]));
        assert_eq!(
            user.extra[CREDENTIAL_ID],
            ["X509SHA256=4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"]
        );
        assert!(user_of(subject(&["7", "8"]), &certificate).is_err());
    }
}
