//! Rules that need no recording.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::super::der::{self, Reader};
use super::super::duration::requested_duration;
use super::super::name::Subject;
use super::super::pem;
use super::super::request::{CertificateRequest, RequestError};
use super::RECORDED;

#[test]
fn g11_durations() {
    let hours = SignedDuration::from_hours;
    let cases = [
        ("absent", hours(24), None, hours(24)),
        ("more than configured", hours(24), Some(25 * 3600), hours(24)),
        ("as requested", hours(24), Some(12 * 3600), hours(12)),
        ("exactly as configured", hours(24), Some(24 * 3600), hours(24)),
        ("ten minutes", hours(24), Some(600), SignedDuration::from_mins(10)),
        ("below the minimum", hours(24), Some(599), SignedDuration::from_mins(10)),
        ("negative", hours(24), Some(-60), SignedDuration::from_mins(10)),
        ("configured below the minimum", SignedDuration::from_mins(5), Some(600), SignedDuration::from_mins(5)),
    ];
    for (name, configured, requested, expected) in cases {
        assert_eq!(requested_duration(configured, requested), expected, "{name}");
    }
}

#[test]
fn t1_only_the_first_block_counts() {
    let request = &RECORDED.case("request rich").request;
    let certificate = &RECORDED.authority("p256").certificate;
    let is_read = |text: String| CertificateRequest::from_pem(text.as_bytes()).is_ok();
    assert!(is_read(format!("text before\n{request}")));
    assert!(is_read(format!("{request}{certificate}garbage")));
    assert!(is_read(request.replace('\n', "\r\n")));
    assert!(!is_read(format!("{certificate}{request}")));
    let nothing = CertificateRequest::from_pem(b"no block").unwrap_err();
    assert_eq!(nothing, RequestError::NotARequest);
    assert_eq!(nothing.to_string(), "PEM block type must be CERTIFICATE REQUEST");
    // Blocks without an end, or with other text than base64, are skipped.
    assert!(is_read(format!("-----BEGIN CERTIFICATE-----\nAAAA\n{request}")));
    assert!(is_read(format!("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n{request}")));
}

#[test]
fn x7_the_subject_is_rebuilt() {
    let read = |case: &str| CertificateRequest::from_pem(RECORDED.case(case).request.as_bytes()).unwrap().subject;
    assert_eq!(read("request two common names").common_name, "last");
    assert_eq!(read("request two organisations").organization, ["system:nodes", "b"]);
    assert_eq!(read("request other attributes"), Subject { common_name: "n".to_owned(), ..Subject::default() });
    let organizations = ["Mün".to_owned(), "B€".to_owned(), "12 3".to_owned(), "i@5".to_owned(), "a*&b".to_owned()];
    let types = read("request string types");
    assert_eq!(types.organization[..5], organizations);
    assert_eq!((types.organization[5].as_str(), types.common_name.as_str()), ("", ""));
}

#[test]
fn d14_many_names_and_deep_structures_are_read_in_linear_time() {
    let names: Vec<u8> = (0..200_000).flat_map(|_| [0x82, 1, b'a']).collect();
    let san = der::element(der::SEQUENCE, &names);
    let extension = der::constructed(
        der::SEQUENCE,
        &[&der::element(der::OID, &[0x55, 0x1d, 17]), &der::element(der::OCTET_STRING, &san)],
    );
    let extensions = der::constructed(der::SEQUENCE, &[&extension]);
    let attribute = der::constructed(
        der::SEQUENCE,
        &[
            &der::element(der::OID, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 14]),
            &der::constructed(der::SET, &[&extensions]),
        ],
    );
    let key = der::constructed(
        der::SEQUENCE,
        &[&der::constructed(der::SEQUENCE, &[&[6, 3, 0x2b, 0x65, 0x70]]), &der::bit_string(&[1; 32])],
    );
    let algorithm: &[u8] = &[0x30, 5, 6, 3, 0x2b, 0x65, 0x70];
    let request = |attributes: &[u8]| {
        let information =
            der::constructed(der::SEQUENCE, &[&[2, 1, 0], &[0x30, 0], &key, &der::element(0xa0, attributes)]);
        der::constructed(der::SEQUENCE, &[&information, algorithm, &der::bit_string(&[0; 64])])
    };
    let pem = pem::certificate(&request(&attribute)).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    let read = CertificateRequest::from_pem(pem.as_bytes()).unwrap();
    assert_eq!(read.dns_names.len(), 200_000);
    assert!(read.verify().is_err());
    let mut deep = Vec::new();
    for _ in 0..20_000 {
        deep = der::element(der::SEQUENCE, &deep);
        if deep.len() > 60_000 {
            break;
        }
    }
    let pem = pem::certificate(&request(&deep)).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    assert!(CertificateRequest::from_pem(pem.as_bytes()).is_ok(), "an attribute that does not parse is ignored");
}

fn subject() -> impl Strategy<Value = Subject> {
    let text = "[ -~äöü€]{0,12}";
    let list = || prop::collection::vec(text, 0..3);
    (list(), list(), list(), list(), list(), list(), list(), text, text).prop_map(
        |(
            country,
            province,
            locality,
            street_address,
            postal_code,
            organization,
            organizational_unit,
            common_name,
            serial_number,
        )| {
            Subject {
                country,
                province,
                locality,
                street_address,
                postal_code,
                organization,
                organizational_unit,
                common_name,
                serial_number,
            }
        },
    )
}

proptest! {
    /// D12: the judged subject is the issued one, but for the order of values, which DER sorts.
    #[test]
    fn d12_a_written_subject_reads_as_the_same(subject in subject()) {
        let sorted = |subject: &Subject| {
            let mut sorted = subject.clone();
            for list in [
                &mut sorted.country,
                &mut sorted.province,
                &mut sorted.locality,
                &mut sorted.street_address,
                &mut sorted.postal_code,
                &mut sorted.organization,
                &mut sorted.organizational_unit,
            ] {
                list.sort();
            }
            sorted
        };
        let der = subject.to_der();
        let read = Subject::read(&der).unwrap();
        prop_assert_eq!(sorted(&read), sorted(&subject));
        // A name that was written is written in the same bytes again.
        prop_assert_eq!(read.to_der(), der);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(CertificateRequest::from_pem(&bytes));
        let mut reader = Reader::new(&bytes);
        while let Ok(element) = reader.any() {
            drop((der::time(&element), Subject::read(element.whole)));
        }
    }
}
