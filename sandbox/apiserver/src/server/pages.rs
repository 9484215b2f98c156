//! Continue tokens of paged lists. Pure.
//!
//! # Upstream
//! `apiserver/pkg/storage/continue.go`

use kcm_api::ObjectKey;
use serde_json::{Value, json};

use crate::decode;
use crate::json;
use crate::status::Status;

const VERSION: &str = "meta.k8s.io/v1";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A continue token: the last object of a page, and the resource version of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The resource version of all pages; `None` continues with the current state (inconsistent continuation).
    pub(crate) version: Option<u64>,
    pub(crate) after: ObjectKey,
}

impl Token {
    /// Decodes a token for a list in one namespace, in all namespaces, or of cluster-scoped objects.
    ///
    /// # Errors
    /// 400 for an invalid token.
    pub(crate) fn parse(text: &str, namespace: Option<&str>, namespaced: bool) -> Result<Self, Status> {
        let invalid =
            |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid{why}"));
        let bytes = decode_text(text).map_err(|at| invalid(&format!(": illegal base64 data at input byte {at}")))?;
        let token = decode::parse_json(&bytes).map_err(|why| invalid(&format!(": {why}")))?;
        let encoded = json::text(&token, &["v"]).unwrap_or_default();
        if encoded != VERSION {
            return Err(invalid(&format!(": server does not recognize this encoded version {encoded}")));
        }
        let version = match json::at(&token, &["rv"]).and_then(Value::as_i64).unwrap_or(0) {
            0 => return Err(invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
            version => u64::try_from(version).ok(),
        };
        let start = json::text(&token, &["start"]).unwrap_or_default();
        if start.is_empty() {
            return Err(invalid(": encoded start key empty (version meta.k8s.io/v1)"));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        if key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(&format!(": {start}")));
        }
        let key = key.strip_suffix('\0').unwrap_or(key);
        let after = match (namespace, key.split_once('/')) {
            (Some(namespace), _) => ObjectKey::namespaced(namespace, key),
            (None, Some((namespace, name))) if namespaced => ObjectKey::namespaced(namespace, name),
            (None, _) => ObjectKey::cluster_scoped(key),
        };
        Ok(Self { version, after })
    }

    /// Encodes the token for a list in one namespace or all.
    pub(crate) fn text(&self, in_namespace: bool) -> String {
        let key = if in_namespace { format!("/{}", self.after.name()) } else { self.after.to_string() };
        let version = self.version.map_or(-1, |version| i64::try_from(version).unwrap_or(i64::MAX));
        encode(json!({ "v": VERSION, "rv": version, "start": format!("{key}\0") }).to_string().as_bytes())
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let six = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default();
            text.push(char::from(ALPHABET[six]));
        }
    }
    text
}

/// Decodes unpadded URL-safe base64; the error is the offset of the invalid byte.
fn decode_text(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::new();
    for (chunk, quad) in text.as_bytes().chunks(4).enumerate() {
        let mut bits = 0_u32;
        for (place, byte) in quad.iter().enumerate() {
            let six = ALPHABET.iter().position(|known| known == byte).ok_or(chunk * 4 + place)?;
            bits = bits << 6 | u32::try_from(six).unwrap_or_default();
        }
        if quad.len() == 1 {
            return Err(chunk * 4 + 1);
        }
        bits <<= 6 * (4 - quad.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..quad.len()]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_a_round_trip() {
        for (after, namespace, namespaced) in [
            (ObjectKey::namespaced("default", "a1"), Some("default"), true),
            (ObjectKey::namespaced("default", "a"), None, true),
            (ObjectKey::cluster_scoped("node-12"), None, false),
        ] {
            for version in [Some(628), None] {
                let token = Token { version, after: after.clone() };
                let text = token.text(namespace.is_some());
                assert_eq!(Token::parse(&text, namespace, namespaced), Ok(token), "{text}");
            }
        }
    }

    #[test]
    fn tokens_have_upstreams_format() {
        let token = Token { version: Some(628), after: ObjectKey::namespaced("default", "a1") };
        let given = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NjI4LCJzdGFydCI6Ii9hMVx1MDAwMCJ9";
        assert_eq!(Token::parse(given, Some("default"), true), Ok(token));
    }

    #[test]
    fn an_invalid_token_is_rejected() {
        for (text, why) in [
            ("e30", ": server does not recognize this encoded version "),
            ("a", ": illegal base64 data at input byte 1"),
            ("a*bc", ": illegal base64 data at input byte 1"),
        ] {
            let refused = Token::parse(text, None, true).expect_err("it is none");
            assert_eq!(refused.message, format!("invalid continue token: continue key is not valid{why}"));
        }
        let refused = Token::parse("abc", None, true).expect_err("it is none");
        assert!(refused.message.starts_with("invalid continue token: continue key is not valid: "), "{refused:?}");
    }
}
