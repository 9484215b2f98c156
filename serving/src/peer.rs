//! The client of a connection.

use rustls::pki_types::CertificateDer;

/// The client of a connection.
pub(super) struct Peer {
    /// Its certificate, and the certificates that link it to a CA.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}
