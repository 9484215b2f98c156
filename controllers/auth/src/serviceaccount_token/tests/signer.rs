//! Keys, signatures and claims.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, RSA_PKCS1_2048_8192_SHA256,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kcm_framework::api::{ObjectKey, Uid};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::key_file;
use crate::serviceaccount_token::claims::Claims;
use crate::serviceaccount_token::signer::Signer;

/// As the API server makes them.
const UID: &str = "11111111-2222-3333-4444-555555555555";

fn token(file: &str) -> String {
    let signer = Signer::read(&key_file(file)).expect("the key can sign");
    let (account, uid) = (ObjectKey::namespaced("shop", "robot"), Uid::from(UID));
    signer.sign(&Claims::of(&account, &uid, "token")).expect("the claims can be signed")
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("it is base64")).expect("it is JSON")
}

/// The file is what upstream's library, go-jose 2.6.3, makes of the same key and claims.
#[test]
fn a_token_is_upstreams_to_the_byte() {
    let expected = include_str!("data/rs256.jwt").trim_end();
    for file in ["rsa.pem", "rsa-pkcs8.pem"] {
        assert_eq!(token(file), expected, "{file}");
    }
}

/// The ids are digests of the public parts that `openssl pkey -pubout` writes.
#[test]
fn every_kind_of_key_signs_by_its_algorithm_under_its_id() {
    let es256: &dyn VerificationAlgorithm = &ECDSA_P256_SHA256_FIXED;
    for (file, algorithm, key_id, verification) in [
        ("rsa.pem", "RS256", "V9D0jydUsmy0Z0G55QOdGL5oTBYGJRbTdzP2wJuHH7g", &RSA_PKCS1_2048_8192_SHA256 as _),
        ("es256.pem", "ES256", "KZuFXg1w4OJW-kq8o1p4-m7Sef-o08_yH7h5GoYS6XU", es256),
        ("es384.pem", "ES384", "PoR_jVy_PrpuMNhTgdFhyUMCxBxSgG4pIXJpKqkg4eI", &ECDSA_P384_SHA384_FIXED as _),
        ("es384-pkcs8.pem", "ES384", "PoR_jVy_PrpuMNhTgdFhyUMCxBxSgG4pIXJpKqkg4eI", &ECDSA_P384_SHA384_FIXED as _),
        ("es512.pem", "ES512", "8zDEfXqG9lo_l8s14LSDwmWfrWt1w51NUjaI7n94AlY", &ECDSA_P521_SHA512_FIXED as _),
    ] {
        let token = token(file);
        let (signed, signature) = token.rsplit_once('.').expect("a token has three parts");
        let (header, claims) = signed.split_once('.').expect("a token has three parts");
        assert_eq!(decoded(header), json!({ "alg": algorithm, "kid": key_id }), "{file}");
        assert_eq!(
            decoded(claims),
            json!({
                "iss": "kubernetes/serviceaccount",
                "kubernetes.io/serviceaccount/namespace": "shop",
                "kubernetes.io/serviceaccount/secret.name": "token",
                "kubernetes.io/serviceaccount/service-account.name": "robot",
                "kubernetes.io/serviceaccount/service-account.uid": UID,
                "sub": "system:serviceaccount:shop:robot",
            }),
            "{file}"
        );
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("it is base64");
        let public = UnparsedPublicKey::new(verification, public_key(file));
        public.verify(signed.as_bytes(), &signature).unwrap_or_else(|_| panic!("{file}: the signature is wrong"));
    }
}

/// The public part of the key in a file.
fn public_key(file: &str) -> Vec<u8> {
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
        EcdsaKeyPair, KeyPair as _, RsaKeyPair,
    };
    let pem = std::fs::read(key_file(file)).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&pem).unwrap();
    if let Ok(rsa) = RsaKeyPair::from_der(key.secret_der()) {
        return rsa.public_key().as_der().unwrap().as_ref().to_vec();
    }
    let curves = [&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDSA_P384_SHA384_FIXED_SIGNING, &ECDSA_P521_SHA512_FIXED_SIGNING];
    let pair = curves.into_iter().find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, key.secret_der()).ok());
    pair.expect("it is an ECDSA key").public_key().as_ref().to_vec()
}

#[test]
fn the_first_key_that_can_sign_is_taken() {
    let read = |file: &str| std::fs::read_to_string(key_file(file)).unwrap();
    let several = format!("a comment\n{}{}{}", read("ed25519.pem"), read("es256.pem"), read("rsa.pem"));
    let signer = Signer::of_pem(several.as_bytes()).expect("there is a key");
    assert!(format!("{signer:?}").contains("ES256"), "{signer:?}");
}

#[test]
fn a_file_without_a_key_that_can_sign_is_refused_with_what_to_give() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sa.key");
    let refusal = || Signer::read(&path).unwrap_err().to_string();
    assert!(refusal().starts_with("cannot read --service-account-private-key-file"), "{}", refusal());
    let ed25519 = std::fs::read_to_string(key_file("ed25519.pem")).unwrap();
    for text in ["", "no PEM", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", &ed25519] {
        std::fs::write(&path, text).unwrap();
        assert!(refusal().contains("RSA of 2,048 to 8,192 bits or ECDSA"), "{}", refusal());
    }
}

#[test]
fn a_key_is_never_shown() {
    let signer = Signer::read(&key_file("rsa.pem")).unwrap();
    assert_eq!(
        format!("{signer:?}"),
        r#"Signer { algorithm: "RS256", key_id: "V9D0jydUsmy0Z0G55QOdGL5oTBYGJRbTdzP2wJuHH7g", .. }"#
    );
}
