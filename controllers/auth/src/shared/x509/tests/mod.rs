//! Requests and certificates, compared with Go's.

mod authority;
mod recorded;
mod rules;

use std::sync::LazyLock;

use serde::Deserialize;

/// Certificates that the authority of upstream has signed.
pub(super) static RECORDED: LazyLock<Recorded> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/certificates.json")).expect("the file must be valid"));

#[derive(Deserialize)]
pub(super) struct Recorded {
    pub(super) authorities: Vec<RecordedAuthority>,
    pub(super) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(super) struct RecordedAuthority {
    pub(super) name: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) authority: String,
    pub(super) request: String,
    pub(super) usages: Vec<String>,
    pub(super) seconds: i64,
    pub(super) now: jiff::Timestamp,
    pub(super) error: Option<String>,
    pub(super) certificate: Option<String>,
}

impl Recorded {
    pub(super) fn authority(&self, name: &str) -> &RecordedAuthority {
        self.authorities.iter().find(|authority| authority.name == name).expect("the authority must be recorded")
    }

    pub(super) fn case(&self, name: &str) -> &Case {
        self.cases.iter().find(|case| case.name == name).expect("the case must be recorded")
    }
}

impl RecordedAuthority {
    pub(super) fn read(&self) -> super::Authority {
        super::Authority::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).expect("it must be valid")
    }
}
