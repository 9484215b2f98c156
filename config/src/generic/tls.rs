//! The versions, cipher suites and curves of TLS, by upstream's names.

use crate::checks;
use crate::value::Value;

/// The cipher suites of Go's `crypto/tls`, including the suites of TLS 1.3 and the suites that it calls insecure.
const CIPHER_SUITES: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

pub(super) fn cipher_suites(value: &Value) -> Result<(), String> {
    checks::one_of(value, CIPHER_SUITES)
}

pub(super) fn version(value: &Value) -> Result<(), String> {
    checks::one_of(value, &["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13", ""])
}

/// The groups of Go's `crypto/tls`: P-256, P-384, P-521, X25519 and their hybrids with ML-KEM.
const CURVES: [i32; 7] = [23, 24, 25, 29, 4587, 4588, 4589];

pub(super) fn curves(value: &Value) -> Result<(), String> {
    let Value::Int32s(curves) = value else { return Ok(()) };
    for (position, curve) in curves.iter().enumerate() {
        if !CURVES.contains(curve) {
            return Err(format!("has {curve}, which is unknown; known are {CURVES:?}"));
        }
        if curves[..position].contains(curve) {
            return Err(format!("has {curve} twice"));
        }
    }
    Ok(())
}
