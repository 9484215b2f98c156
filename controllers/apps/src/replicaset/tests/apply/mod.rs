//! Whole reconciles on an API server in the process.

mod answers;
mod claims;
mod creation;
mod deletion;
mod status;

use kcm_sandbox_apiserver::Status;
use serde_json::Value;

fn warning(reason: &str, message: &str) -> (String, String, String) {
    ("Warning".to_owned(), reason.to_owned(), message.to_owned())
}

fn normal(reason: &str, message: &str) -> (String, String, String) {
    ("Normal".to_owned(), reason.to_owned(), message.to_owned())
}

fn internal_error() -> Status {
    Status::new(500, "InternalError", "storage is sick")
}

fn uid(object: &Value) -> &Value {
    &object["metadata"]["uid"]
}
