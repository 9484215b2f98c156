//! The error of an object that cannot be decoded.

use crate::protobuf::Malformed;

/// The error of an object that cannot be decoded as the view.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode an object of the API")]
pub struct DecodeError(#[source] Flaw);

#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error(transparent)]
    Json(serde_json::Error),
    #[error(transparent)]
    Protobuf(Malformed),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        Self(Flaw::Json(error))
    }
}

impl From<Malformed> for DecodeError {
    fn from(error: Malformed) -> Self {
        Self(Flaw::Protobuf(error))
    }
}

impl From<DecodeError> for serde_json::Error {
    fn from(error: DecodeError) -> Self {
        match error.0 {
            Flaw::Json(error) => error,
            Flaw::Protobuf(error) => serde::de::Error::custom(error),
        }
    }
}
