//! Certificates, verdicts and URIs that Go's `crypto/x509` and upstream's `authority` package gave.

use std::fmt::Write as _;

use aws_lc_rs::digest::{Context, SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use serde::Deserialize;

use super::super::certificate::{Issue, SERIAL, Validity};
use super::super::der::{self, Reader};
use super::super::request::CertificateRequest;
use super::super::usages::Usages;
use super::super::{pem, uri};
use super::{Case, RECORDED};

/// Splits a certificate into the signed part, the algorithm and the signature.
fn parts(certificate: &[u8]) -> [Vec<u8>; 3] {
    let mut inside = Reader::new(certificate).inside(der::SEQUENCE, "").unwrap();
    [(); 3].map(|()| inside.any().unwrap().whole.to_vec())
}

/// Returns the serial number of a certificate as octets of full length.
fn serial(certificate: &[u8]) -> [u8; SERIAL] {
    let mut signed = Reader::new(&parts(certificate)[0]).inside(der::SEQUENCE, "").map(|reader| {
        let mut reader = reader;
        reader.any().unwrap();
        reader.element(der::INTEGER, "").unwrap().content.to_vec()
    });
    let number = signed.as_mut().unwrap();
    while number.len() < SERIAL {
        number.insert(0, 0);
    }
    number[number.len() - SERIAL..].try_into().unwrap()
}

fn issued(case: &Case) -> Result<Vec<u8>, String> {
    let authority = RECORDED.authority(&case.authority).read();
    let request = CertificateRequest::from_pem(case.request.as_bytes()).map_err(|error| error.to_string())?;
    request.verify().map_err(|error| error.to_string())?;
    let usages = Usages::of(&case.usages).map_err(|error| error.to_string())?;
    let lifetime = SignedDuration::from_secs(case.seconds);
    let validity = Validity::of(case.now, lifetime, authority.not_after()).map_err(|error| error.to_string())?;
    let recorded = case.certificate.as_ref().expect("upstream must have signed it");
    let recorded = pem::blocks(recorded.as_bytes()).next().unwrap().der.clone();
    let issue = Issue { usages, validity, serial: serial(&recorded), algorithm: authority.algorithm() };
    authority.issue(&request, &issue).map_err(|error| error.to_string())
}

#[test]
fn certificates_equal_those_of_upstream_in_bytes() {
    let mut compared = 0;
    for case in RECORDED.cases.iter().filter(|case| case.error.is_none()) {
        let ours = issued(case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let recorded = case.certificate.as_ref().unwrap();
        let theirs = pem::blocks(recorded.as_bytes()).next().unwrap().der.clone();
        let (ours_parts, theirs_parts) = (parts(&ours), parts(&theirs));
        assert_eq!(ours_parts[..2], theirs_parts[..2], "{}", case.name);
        // ECDSA has random signatures.
        if !["p256", "p384", "p521"].iter().any(|curve| case.authority.starts_with(curve)) {
            assert_eq!(ours, *theirs, "{}", case.name);
            assert_eq!(pem::certificate(&ours), *recorded, "{}", case.name);
        }
        compared += 1;
    }
    assert!(compared > 50, "{compared} certificates");
}

#[test]
fn errors_equal_those_of_upstream() {
    for case in RECORDED.cases.iter().filter(|case| case.error.is_some()) {
        let authority = RECORDED.authority(&case.authority).read();
        let request = CertificateRequest::from_pem(case.request.as_bytes()).unwrap();
        let error = authority
            .sign(&request, &case.usages, SignedDuration::from_secs(case.seconds), case.now)
            .expect_err(&case.name)
            .to_string();
        let theirs = case.error.as_ref().unwrap();
        // The library does not say more of a wrong signature.
        assert!(theirs.starts_with(&error), "{}: {error} is not {theirs}", case.name);
    }
}

#[derive(Deserialize)]
struct Mutations {
    name: String,
    der: String,
    verdicts: String,
    digest: String,
}

/// The values of a request in the form of the recording.
fn canonical(request: &CertificateRequest) -> String {
    let subject = &request.subject;
    let mut text = format!("{}|", subject.country.len());
    let one = |value: &String| vec![value.clone()];
    let (common_name, serial_number) = (one(&subject.common_name), one(&subject.serial_number));
    for list in [
        &subject.country,
        &subject.province,
        &subject.locality,
        &subject.street_address,
        &subject.postal_code,
        &subject.organization,
        &subject.organizational_unit,
        &common_name,
        &serial_number,
        &request.dns_names,
        &request.email_addresses,
    ] {
        text += &list.join("\0");
        text += "|";
    }
    for address in &request.ip_addresses {
        write!(text, "{address},").unwrap();
    }
    text += "|";
    for uri in &request.uris {
        write!(text, "{uri},").unwrap();
    }
    text
}

#[test]
fn changed_bytes_get_the_verdicts_and_values_of_go() {
    let all: Vec<Mutations> = serde_json::from_str(include_str!("data/mutations.json")).unwrap();
    for recorded in all {
        let original = STANDARD.decode(&recorded.der).unwrap();
        let masks = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff];
        let changes = (0..original.len()).flat_map(|at| masks.map(|mask: u8| (at, mask)));
        let mut values = Context::new(&SHA256);
        let mut differences = Vec::new();
        for ((at, mask), verdict) in changes.zip(recorded.verdicts.chars()) {
            let mut der = original.clone();
            der[at] ^= mask;
            let read = CertificateRequest::from_der(&der);
            if let Ok(request) = &read {
                values.update(format!("{}\n", canonical(request)).as_bytes());
            }
            if read.is_ok() != (verdict == '1') {
                differences.push(format!("{at}^{mask}: Go {verdict}, here {:?}", read.map(|_| ())));
            }
        }
        assert!(differences.is_empty(), "{}: {differences:#?}", recorded.name);
        let digest = values.finish().as_ref().iter().fold(String::new(), |mut digest, octet| {
            write!(digest, "{octet:02x}").unwrap();
            digest
        });
        assert_eq!(digest, recorded.digest, "{}: the values differ", recorded.name);
    }
}

#[test]
fn uris_are_printed_as_by_go() {
    let all: Vec<(String, String)> = serde_json::from_str(include_str!("data/uris.json")).unwrap();
    assert!(all.len() > 60);
    for (text, expected) in all {
        let printed = uri::normalized(&text).map_or("error".to_owned(), |uri| format!("={uri}"));
        assert_eq!(printed, expected, "{text:?}");
    }
}

#[test]
fn signatures_that_go_accepts_are_verified_or_named_as_unsupported() {
    let all: Vec<(String, String, String)> = serde_json::from_str(include_str!("data/algorithms.json")).unwrap();
    assert_eq!(all.len(), 20);
    for (name, pem, unsupported) in all {
        let request = CertificateRequest::from_pem(pem.as_bytes()).unwrap();
        let error = request.verify().err().map(|error| error.to_string()).unwrap_or_default();
        let expected = match unsupported.as_str() {
            "" => String::new(),
            what => format!("the signature algorithm of the request cannot be verified: {what}"),
        };
        assert_eq!(error, expected, "{name}");
    }
}
