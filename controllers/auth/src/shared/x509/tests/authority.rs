//! The files of an authority.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA384_ASN1_SIGNING,
    ECDSA_P521_SHA512_ASN1, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use jiff::SignedDuration;

use super::super::authority::{Authority, AuthorityError};
use super::super::der::{self, Reader};
use super::super::pem;
use super::super::request::CertificateRequest;
use super::RECORDED;

#[test]
fn g12_a_pair_is_checked_in_full() {
    let rsa = RECORDED.authority("rsa");
    let p256 = RECORDED.authority("p256");
    let ed25519 = RECORDED.authority("ed25519");
    let with_headers = p256.certificate.replacen('\n', "\nA: b\n\n", 1);
    let chain = format!("{}{}", p256.certificate, rsa.certificate);
    let parameters =
        format!("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{}", p256.key);
    let foreign_label = p256.key.replace("EC PRIVATE KEY", "MY PRIVATE KEY");
    let wrong_label = ed25519.key.replace("PRIVATE KEY", "EC PRIVATE KEY");
    let text_before = format!("some text\n{}", p256.certificate);
    let cases: [(&str, &str, &str, Result<(), AuthorityError>); 12] = [
        ("RSA", &rsa.certificate, &rsa.key, Ok(())),
        ("ECDSA", &p256.certificate, &p256.key, Ok(())),
        ("parameters of the curve before the key", &p256.certificate, &parameters, Ok(())),
        ("text before the certificate", &text_before, &p256.key, Ok(())),
        ("no certificate", "", &p256.key, Err(AuthorityError::Certificates(0))),
        ("a key for a certificate", &p256.key, &p256.key, Err(AuthorityError::Certificates(0))),
        ("a chain", &chain, &p256.key, Err(AuthorityError::Certificates(2))),
        ("headers", &with_headers, &p256.key, Err(AuthorityError::Certificates(0))),
        ("no key", &p256.certificate, "", Err(AuthorityError::Key)),
        ("key of another type", &p256.certificate, &rsa.key, Err(AuthorityError::Key)),
        ("key with another label", &p256.certificate, &foreign_label, Err(AuthorityError::Key)),
        ("key whose label does not fit", &ed25519.certificate, &wrong_label, Err(AuthorityError::Key)),
    ];
    for (name, certificate, key, expected) in cases {
        let read = Authority::from_pem(certificate.as_bytes(), key.as_bytes());
        assert_eq!(read.map(drop), expected, "{name}");
    }
}

#[test]
fn g12_a_key_of_another_certificate_is_refused() {
    let ours = rcgen::KeyPair::generate().unwrap();
    let other = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&ours).unwrap().pem();
    let read = |key: &rcgen::KeyPair| Authority::from_pem(certificate.as_bytes(), key.serialize_pem().as_bytes());
    assert!(read(&ours).is_ok());
    assert_eq!(read(&other).map(drop), Err(AuthorityError::Mismatch));
}

#[test]
fn x1_serial_numbers_differ_and_signatures_verify() {
    for (name, curve, verifier) in [
        ("p256", &ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P256_SHA256_ASN1),
        ("p384", &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1),
        ("p521", &ECDSA_P521_SHA512_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1),
    ] {
        let recorded = RECORDED.authority(name);
        let authority = recorded.read();
        let case = RECORDED.case("request rich");
        let request = CertificateRequest::from_pem(case.request.as_bytes()).unwrap();
        let sign = || authority.sign(&request, &case.usages, SignedDuration::from_hours(1), case.now).unwrap();
        let (first, second) = (sign(), sign());
        assert_ne!(first, second);
        let key = pem::blocks(recorded.key.as_bytes()).next().unwrap();
        let public = EcdsaKeyPair::from_private_key_der(curve, &key.der).unwrap().public_key().as_ref().to_vec();
        let der = pem::blocks(first.as_bytes()).next().unwrap().der;
        let mut certificate = Reader::new(&der).inside(der::SEQUENCE, "").unwrap();
        let signed = certificate.any().unwrap().whole;
        certificate.any().unwrap();
        let signature = certificate.bit_string("").unwrap();
        UnparsedPublicKey::new(verifier, public).verify(signed, &signature).expect(name);
    }
}

#[test]
fn d13_no_debug_form_shows_a_key() {
    let recorded = RECORDED.authority("rsa");
    let text = format!("{:?}", recorded.read());
    assert_eq!(text, format!("Authority {{ not_after: {:?}, .. }}", recorded.read().not_after()));
    let broken = recorded.key.replace("MII", "MIJ");
    let error = Authority::from_pem(recorded.certificate.as_bytes(), broken.as_bytes()).map(drop).unwrap_err();
    let secret = recorded.key.lines().nth(1).unwrap();
    assert!(!format!("{error} {error:?}").contains(&secret[..16]));
}
