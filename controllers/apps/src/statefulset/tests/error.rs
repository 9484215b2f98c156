//! Which of several errors decides when the key is retried.

use kcm_framework::{Class, ReconcileError};

use crate::statefulset::error::{ClaimError, SyncError};
use crate::statefulset::new_objects::InvalidTemplate;

#[test]
fn an_error_that_is_retried_takes_precedence() {
    let invalid = || SyncError::InvalidTemplate(InvalidTemplate::Absent);
    let transient = || {
        let mut claims = ClaimError::default();
        claims.terminating("data-web-0");
        SyncError::Claims(claims)
    };
    for (name, errors, expected) in [
        ("only one that no retry fixes", vec![invalid()], Class::Terminal),
        ("the first is retried", vec![transient(), invalid()], Class::Transient),
        ("the second is retried", vec![invalid(), transient()], Class::Transient),
    ] {
        let error = errors.into_iter().reduce(SyncError::or_sooner).expect("there is one");
        assert_eq!(ReconcileError::from(error).class(), expected, "{name}");
    }
}
