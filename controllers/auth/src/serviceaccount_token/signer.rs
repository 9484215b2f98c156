//! The signatures of tokens: JSON web tokens by RS256, ES256, ES384 or ES512, as the key has it.

use std::fmt;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Serialize;
use zeroize::Zeroizing;

/// The curves of ECDSA keys, with the names of their algorithms.
static CURVES: [(&str, &EcdsaSigningAlgorithm); 3] = [
    ("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING),
    ("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING),
    ("ES512", &ECDSA_P521_SHA512_FIXED_SIGNING),
];

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    /// The file cannot be read.
    #[error("cannot read --service-account-private-key-file {path:?}: check its path and permissions")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file has no key that can sign.
    #[error(
        "--service-account-private-key-file {path:?} has no private key that can sign tokens: give one in PEM, RSA of 2,048 \
         to 8,192 bits or ECDSA on P-256, P-384 or P-521, without a password"
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
}

/// A token that could not be signed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignError {
    /// The claims are no JSON.
    #[error("cannot write the claims of a token")]
    Claims(#[from] serde_json::Error),
    /// The key refuses to sign.
    #[error("cannot sign a token with the key of --service-account-private-key-file")]
    Key(#[from] Unspecified),
}

/// A private key that signs tokens.
pub(super) struct Signer {
    key: Key,
    algorithm: &'static str,
    key_id: String,
}

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("algorithm", &self.algorithm)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// The header of a token, in the order of its names.
#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    kid: &'a str,
}

impl Signer {
    /// Reads the first key of a PEM file that can sign. Other sections, such as the parameters of a curve, are skipped.
    ///
    /// # Errors
    /// The file cannot be read, or has no such key.
    pub(super) fn read(path: &Path) -> Result<Self, KeyError> {
        let pem = std::fs::read(path).map_err(|source| KeyError::Unreadable { path: path.to_owned(), source })?;
        // Wiped from memory when it is dropped.
        let pem = Zeroizing::new(pem);
        Self::of_pem(&pem).ok_or_else(|| KeyError::NoKey { path: path.to_owned() })
    }

    /// The first key of a PEM that can sign.
    pub(super) fn of_pem(pem: &[u8]) -> Option<Self> {
        PrivateKeyDer::pem_slice_iter(pem).map_while(Result::ok).find_map(|key| Self::of_der(&key))
    }

    fn of_der(key: &PrivateKeyDer<'_>) -> Option<Self> {
        let rsa = if let PrivateKeyDer::Pkcs1(der) = key {
            RsaKeyPair::from_der(der.secret_pkcs1_der()).ok()
        } else if let PrivateKeyDer::Pkcs8(der) = key {
            RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()
        } else {
            None
        };
        if let Some(rsa) = rsa {
            let public = rsa.public_key().as_der().ok()?;
            return Some(Self { key: Key::Rsa(Box::new(rsa)), algorithm: "RS256", key_id: key_id(&public) });
        }
        CURVES.iter().find_map(|(algorithm, curve)| {
            let pair = EcdsaKeyPair::from_private_key_der(curve, key.secret_der()).ok()?;
            let public = pair.public_key().as_der().ok()?;
            Some(Self { key: Key::Ecdsa(pair), algorithm, key_id: key_id(&public) })
        })
    }

    /// The token with these claims.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Result<String, SignError> {
        let header = Header { alg: self.algorithm, kid: &self.key_id };
        let encode = |json: Vec<u8>| URL_SAFE_NO_PAD.encode(json);
        let signed = format!("{}.{}", encode(serde_json::to_vec(&header)?), encode(serde_json::to_vec(claims)?));
        let signature = self.signature(signed.as_bytes())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)?;
                Ok(signature)
            }
            Key::Ecdsa(pair) => Ok(pair.sign(&random, message)?.as_ref().to_vec()),
        }
    }
}

/// The id of a key: the digest of its public part.
///
/// # Upstream
/// `keyIDFromPublicKey` in `pkg/serviceaccount`.
fn key_id(public: &PublicKeyX509Der<'_>) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, public.as_ref()))
}
