//! Paths, headers and certificates of clients that are not as they should be, by seeded mutations.

#[path = "../../../fuzz/mutations.rs"]
mod mutate;

use std::fmt::Write as _;

use kcm_framework::x509::validity;
use mutate::mutate;

use crate::names::subject;
use crate::percent::percent_decoded;

#[test]
fn what_is_percent_decoded_is_text_that_every_encoding_of_it_gives() {
    mutate(&[b"/a%2Fb%c3%a4", b"%25%zz", b"x-remote-extra-%41"], 20_000, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let Some(decoded) = percent_decoded(text) else { return };
        assert!(decoded.len() <= text.len());
        let mut encoded = String::new();
        for byte in decoded.bytes() {
            write!(encoded, "%{byte:02x}").expect("a string takes all text");
        }
        assert_eq!(percent_decoded(&encoded).as_deref(), Some(&*decoded));
    });
}

#[test]
fn no_certificate_makes_the_reader_of_subjects_panic() {
    let name: &[u8] =
        b"\x31\x0f\x30\x0d\x06\x03\x55\x04\x03\x0c\x06client\x31\x0b\x30\x09\x06\x03\x55\x04\x0a\x1e\x02\0a";
    let whole = b"\x30\x28\x30\x26\xa0\x03\x02\x01\x02\x02\x01\x01\x30\0\x30\0\x30\x1e\x17\x0d300102030405Z\x17\x0d310102030405Z";
    assert!(subject(name).is_some());
    mutate(&[name, whole], 20_000, |bytes| {
        if let Some(subject) = subject(bytes) {
            let names = subject.organizations.iter().chain(&subject.uids).map(String::len);
            assert!(subject.common_name.len() + names.sum::<usize>() <= 2 * bytes.len());
        }
        let _validity = validity(bytes);
    });
}
