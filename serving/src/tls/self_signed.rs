//! The self-signed certificate of the HTTPS port.

use std::net::IpAddr;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, KeyPair as Keys, KeyUsagePurpose, date_time_ymd,
};

use super::key_pair::KeyPair;

/// Time for which a certificate is valid.
const VALIDITY: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Makes a certificate for `localhost`, 127.0.0.1 and `bound`, followed by the certificate of a CA whose key is
/// forgotten.
pub(super) fn generate(bound: IpAddr, now: Timestamp) -> Result<KeyPair, Error> {
    let second = now.as_second();
    let mut params = params(format!("localhost-ca@{second}"), Vec::new(), now)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(params, Keys::generate()?)?;

    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    if !bound.is_unspecified() && !names.contains(&bound.to_string()) {
        names.push(bound.to_string());
    }
    let mut params = self::params(format!("localhost@{second}"), names, now)?;
    params.key_usages = vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let keys = Keys::generate()?;
    let certificate = params.signed_by(&keys, &authority)?;
    let cert = format!("{}{}", certificate.pem(), authority.pem());
    Ok(KeyPair { path: PathBuf::from("memory"), cert: cert.into(), key: keys.serialize_pem().into() })
}

fn params(name: String, names: Vec<String>, now: Timestamp) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let day = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    // Whole days: the begin of today is early enough for clocks that are behind, unless the day has just begun.
    let hour = SignedDuration::from_hours(1);
    params.not_before = day(now.saturating_sub(hour).unwrap_or(now));
    params.not_after = day(now.saturating_add(VALIDITY).unwrap_or(Timestamp::MAX));
    Ok(params)
}
