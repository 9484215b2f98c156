//! The public key of a request: read, written again, and used to verify the signature of the request.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA1_ASN1, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1,
    ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ECDSA_P521_SHA1_ASN1,
    ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ED25519, ParsedPublicKey,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey, VerificationAlgorithm,
};

use super::der::{self, Malformed, Reader};

const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const OID_ED25519: &[u8] = &[0x2b, 0x65, 0x70];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl Curve {
    const ALL: [Self; 4] = [Self::P224, Self::P256, Self::P384, Self::P521];

    const fn oid(self) -> &'static [u8] {
        match self {
            Self::P224 => &[0x2b, 0x81, 4, 0, 0x21],
            Self::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
            Self::P384 => &[0x2b, 0x81, 4, 0, 0x22],
            Self::P521 => &[0x2b, 0x81, 4, 0, 0x23],
        }
    }

    /// Returns an algorithm that checks points of the curve. The library has none for P-224.
    fn verifier(self) -> Option<&'static dyn VerificationAlgorithm> {
        match self {
            Self::P224 => None,
            Self::P256 => Some(&ECDSA_P256_SHA256_ASN1),
            Self::P384 => Some(&ECDSA_P384_SHA384_ASN1),
            Self::P521 => Some(&ECDSA_P521_SHA512_ASN1),
        }
    }

    /// Octets of a coordinate.
    const fn size(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// A public key that a certificate can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// Contents of two integers: modulus and exponent.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// An uncompressed point of a curve.
    Ec { curve: Curve, point: Vec<u8> },
    /// A key of Ed25519.
    Ed25519(Vec<u8>),
    /// A key of another algorithm.
    Other,
}

impl PublicKey {
    pub(super) fn read(info: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut algorithm = info.inside(der::SEQUENCE, "the public key has no algorithm")?;
        let oid = algorithm.oid("the public key has no algorithm")?;
        let parameters = if algorithm.is_empty() { None } else { Some(algorithm.any()?) };
        let key = info.bit_string("the public key has no value")?;
        match oid {
            OID_RSA => {
                if parameters.map(|parameters| parameters.whole) != Some(&[der::NULL, 0]) {
                    return Err(Malformed("the RSA key lacks NULL parameters"));
                }
                let mut numbers = Reader::new(&key).inside(der::SEQUENCE, "invalid RSA key")?;
                let mut positive = || {
                    let number = numbers.element(der::INTEGER, "invalid RSA key")?.content;
                    der::check_integer(number)?;
                    let is_positive = number[0] & 0x80 == 0 && number != [0];
                    if is_positive { Ok(number.to_vec()) } else { Err(Malformed("RSA key that is not positive")) }
                };
                let (modulus, exponent) = (positive()?, positive()?);
                // Go reads the exponent into 64 bits.
                der::check_small_integer(&exponent)?;
                Ok(Self::Rsa { modulus, exponent })
            }
            OID_EC => {
                let parameters = parameters.filter(|parameters| parameters.tag == der::OID);
                let parameters = parameters.ok_or(Malformed("invalid ECDSA parameters"))?;
                let curve = Curve::ALL.into_iter().find(|curve| curve.oid() == parameters.content);
                let curve = curve.ok_or(Malformed("unsupported elliptic curve"))?;
                if key.first() != Some(&4) || key.len() != 1 + 2 * curve.size() {
                    return Err(Malformed("the point of the ECDSA key is not uncompressed"));
                }
                let is_on_curve = curve.verifier().is_none_or(|verifier| ParsedPublicKey::new(verifier, &key).is_ok());
                if !is_on_curve {
                    return Err(Malformed("the point of the ECDSA key is not on its curve"));
                }
                Ok(Self::Ec { curve, point: key.into_owned() })
            }
            OID_ED25519 if parameters.is_some() => Err(Malformed("the Ed25519 key has parameters")),
            OID_ED25519 if key.len() != 32 => Err(Malformed("the Ed25519 key has not 32 bytes")),
            OID_ED25519 => Ok(Self::Ed25519(key.into_owned())),
            _other => Ok(Self::Other),
        }
    }

    /// Returns the `SubjectPublicKeyInfo`; `None` for a key of another algorithm.
    pub(super) fn to_der(&self) -> Option<Vec<u8>> {
        let key = self.bits()?;
        let algorithm = match self {
            Self::Rsa { .. } => der::constructed(der::SEQUENCE, &[&der::element(der::OID, OID_RSA), &[der::NULL, 0]]),
            Self::Ec { curve, .. } => der::constructed(
                der::SEQUENCE,
                &[&der::element(der::OID, OID_EC), &der::element(der::OID, curve.oid())],
            ),
            Self::Ed25519(_) => der::constructed(der::SEQUENCE, &[&der::element(der::OID, OID_ED25519)]),
            Self::Other => return None,
        };
        Some(der::constructed(der::SEQUENCE, &[&algorithm, &der::bit_string(&key)]))
    }

    /// Returns the content of the bit string.
    pub(super) fn bits(&self) -> Option<Vec<u8>> {
        match self {
            Self::Rsa { modulus, exponent } => {
                let (modulus, exponent) = (der::unsigned(modulus), der::unsigned(exponent));
                Some(der::constructed(der::SEQUENCE, &[&modulus, &exponent]))
            }
            Self::Ec { point, .. } => Some(point.clone()),
            Self::Ed25519(key) => Some(key.clone()),
            Self::Other => None,
        }
    }
}

/// The algorithm of a signature, as far as Go verifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureAlgorithm {
    /// RSA with the padding of PKCS #1.
    Pkcs1(Hash),
    /// RSA with PSS; the salt is as long as the hash.
    Pss(Hash),
    Ecdsa(Hash),
    Ed25519,
    Other,
}

/// The hash of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl SignatureAlgorithm {
    /// Reads the content of an `AlgorithmIdentifier`.
    pub(super) fn read(mut algorithm: Reader<'_>) -> Result<Self, Malformed> {
        let oid = algorithm.oid("the signature has no algorithm")?;
        let parameters = if algorithm.is_empty() { None } else { Some(algorithm.any()?.whole) };
        Ok(match oid {
            [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, hash] => match hash {
                5 => Self::Pkcs1(Hash::Sha1),
                11 => Self::Pkcs1(Hash::Sha256),
                12 => Self::Pkcs1(Hash::Sha384),
                13 => Self::Pkcs1(Hash::Sha512),
                10 => parameters.and_then(pss_hash).map_or(Self::Other, Self::Pss),
                _other => Self::Other,
            },
            [0x2b, 0x0e, 3, 2, 0x1d] => Self::Pkcs1(Hash::Sha1),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => Self::Ecdsa(Hash::Sha1),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, hash] => match hash {
                2 => Self::Ecdsa(Hash::Sha256),
                3 => Self::Ecdsa(Hash::Sha384),
                4 => Self::Ecdsa(Hash::Sha512),
                _other => Self::Other,
            },
            OID_ED25519 if parameters.is_none() => Self::Ed25519,
            _other => Self::Other,
        })
    }
}

/// Reads the parameters of PSS: one hash for message and mask, a salt of its length, a trailer of one octet.
fn pss_hash(parameters: &[u8]) -> Option<Hash> {
    let mut fields = Reader::new(parameters).inside(der::SEQUENCE, "").ok()?;
    let hash = fields.inside(0xa0, "").ok()?.element(der::SEQUENCE, "").ok()?;
    let mut mask = fields.inside(0xa1, "").ok()?.inside(der::SEQUENCE, "").ok()?;
    if mask.oid("").ok()? != [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 8] {
        return None;
    }
    let salt = fields.inside(0xa2, "").ok()?.element(der::INTEGER, "").ok()?.content;
    let is_default_trailer = fields.is_empty() || {
        let trailer = fields.inside(0xa3, "").ok()?.element(der::INTEGER, "").ok()?.content;
        trailer == [1]
    };
    let mask_hash = mask.element(der::SEQUENCE, "").ok()?;
    let read = |content: &[u8]| {
        let mut algorithm = Reader::new(content);
        let oid = algorithm.oid("").ok()?;
        let parameters = if algorithm.is_empty() { None } else { Some(algorithm.any().ok()?.whole) };
        if !matches!(parameters, None | Some([der::NULL, 0])) {
            return None;
        }
        match oid {
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Some((Hash::Sha256, 32)),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Some((Hash::Sha384, 48)),
            [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Some((Hash::Sha512, 64)),
            _other => None,
        }
    };
    let (hash, length) = read(hash.content)?;
    let is_same = read(mask_hash.content)?.0 == hash && salt == [length];
    (is_same && is_default_trailer).then_some(hash)
}

/// A signature that is wrong or cannot be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VerifyError {
    /// The library has no such algorithm.
    #[error("the signature algorithm of the request cannot be verified: {0}")]
    Unsupported(&'static str),
    /// The signature does not fit.
    #[error("unable to verify certificate request signature")]
    Wrong,
}

/// Verifies that `signature` is the signature of `message` by `key`.
pub(super) fn verify(
    key: &PublicKey,
    algorithm: SignatureAlgorithm,
    message: &[u8],
    signature: &[u8],
) -> Result<(), VerifyError> {
    let verifier = verifier(key, algorithm)?;
    let bits = key.bits().ok_or(VerifyError::Unsupported("unknown type of key"))?;
    UnparsedPublicKey::new(verifier, bits).verify(message, signature).map_err(|_| VerifyError::Wrong)
}

fn verifier(key: &PublicKey, algorithm: SignatureAlgorithm) -> Result<&'static dyn VerificationAlgorithm, VerifyError> {
    use SignatureAlgorithm as A;
    let unsupported = |what| Err(VerifyError::Unsupported(what));
    match (key, algorithm) {
        (PublicKey::Rsa { modulus, .. }, A::Pkcs1(_) | A::Pss(_)) => {
            let bits = bits(modulus);
            if bits > 8192 {
                return unsupported("RSA key of more than 8192 bits");
            }
            match algorithm {
                A::Pkcs1(Hash::Sha1) => Ok(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY),
                A::Pkcs1(Hash::Sha256) => Ok(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY),
                A::Pkcs1(Hash::Sha512) => Ok(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY),
                A::Pkcs1(Hash::Sha384) | A::Pss(_) if bits < 2048 => {
                    unsupported("RSA key of less than 2048 bits with SHA-384 or PSS")
                }
                A::Pkcs1(Hash::Sha384) => Ok(&RSA_PKCS1_2048_8192_SHA384),
                A::Pss(Hash::Sha256) => Ok(&RSA_PSS_2048_8192_SHA256),
                A::Pss(Hash::Sha384) => Ok(&RSA_PSS_2048_8192_SHA384),
                A::Pss(Hash::Sha512) => Ok(&RSA_PSS_2048_8192_SHA512),
                A::Pss(Hash::Sha1) | A::Ecdsa(_) | A::Ed25519 | A::Other => {
                    unsupported("RSA key with another algorithm")
                }
            }
        }
        (PublicKey::Ec { curve, .. }, A::Ecdsa(hash)) => match (curve, hash) {
            (Curve::P224, _) => unsupported("ECDSA on P-224"),
            (Curve::P256, Hash::Sha1) => Ok(&ECDSA_P256_SHA1_ASN1),
            (Curve::P256, Hash::Sha256) => Ok(&ECDSA_P256_SHA256_ASN1),
            (Curve::P256, Hash::Sha384) => Ok(&ECDSA_P256_SHA384_ASN1),
            (Curve::P256, Hash::Sha512) => Ok(&ECDSA_P256_SHA512_ASN1),
            (Curve::P384, Hash::Sha1) => unsupported("ECDSA on P-384 with SHA-1"),
            (Curve::P384, Hash::Sha256) => Ok(&ECDSA_P384_SHA256_ASN1),
            (Curve::P384, Hash::Sha384) => Ok(&ECDSA_P384_SHA384_ASN1),
            (Curve::P384, Hash::Sha512) => Ok(&ECDSA_P384_SHA512_ASN1),
            (Curve::P521, Hash::Sha1) => Ok(&ECDSA_P521_SHA1_ASN1),
            (Curve::P521, Hash::Sha256) => Ok(&ECDSA_P521_SHA256_ASN1),
            (Curve::P521, Hash::Sha384) => Ok(&ECDSA_P521_SHA384_ASN1),
            (Curve::P521, Hash::Sha512) => Ok(&ECDSA_P521_SHA512_ASN1),
        },
        (PublicKey::Ed25519(_), A::Ed25519) => Ok(&ED25519),
        (PublicKey::Other, _) => unsupported("unknown type of key"),
        (PublicKey::Rsa { .. } | PublicKey::Ec { .. } | PublicKey::Ed25519(_), _) => {
            unsupported("the algorithm does not fit the key")
        }
    }
}

/// Number of bits of an integer.
fn bits(number: &[u8]) -> usize {
    let skipped = number.iter().take_while(|octet| **octet == 0).count();
    let number = &number[skipped..];
    number.first().map_or(0, |first| number.len() * 8 - usize::try_from(first.leading_zeros()).unwrap_or_default())
}
