//! The signature of a text with a bootstrap token.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Returns the JWS of `content`, without the content: `HEADER..SIGNATURE`, signed with HMAC-SHA256.
///
/// # Upstream
/// `ComputeDetachedSignature` of `cluster-bootstrap/token/jws`: equal in bytes. `id` consists of lower-case letters and
/// digits, so that the header needs no escapes.
pub(super) fn detached_signature(content: &str, id: &str, secret: &[u8]) -> String {
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{header}..{signature}")
}

#[cfg(test)]
mod tests {
    use super::detached_signature;

    #[test]
    fn b5_the_signature_is_that_of_upstream() {
        let expected = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiYzEyMyJ9..QSxpUG7Q542CirTI2ECPSZjvBOJURUW5a7XqFpNI958";
        assert_eq!(detached_signature("payload", "abc123", b"tokenSecret"), expected);
    }
}
