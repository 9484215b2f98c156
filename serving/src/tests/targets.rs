//! Rules that hold for any path, header and certificate, the bodies of the fuzz targets in `fuzz/`, which `cargo test` calls
//! with seeded mutations.

use std::fmt::Write as _;

use kcm_framework::x509::validity;

use crate::names::subject;
use crate::percent::percent_decoded;

/// The text of a path or header: it is refused, or every encoding of its decoded text is decoded as the same.
pub(crate) fn percent(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(decoded) = percent_decoded(text) else { return };
    assert!(decoded.len() <= text.len());
    let mut encoded = String::new();
    for byte in decoded.bytes() {
        write!(encoded, "%{byte:02x}").expect("a string takes all text");
    }
    assert_eq!(percent_decoded(&encoded).as_deref(), Some(&*decoded));
}

/// The subject of a certificate, or a certificate: each is read within memory that its length bounds, or refused.
pub(crate) fn certificates(bytes: &[u8]) {
    if let Some(subject) = subject(bytes) {
        let names = subject.organizations.iter().chain(&subject.uids).map(String::len);
        assert!(subject.common_name.len() + names.sum::<usize>() <= 2 * bytes.len());
    }
    let _validity = validity(bytes);
}
