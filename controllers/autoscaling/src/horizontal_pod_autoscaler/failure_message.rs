//! The messages of failed requests, as client-go has them. Pure.

use kcm_framework::client::ApiError;

/// The message of a failed request. Where the body of the response was no status of Kubernetes, it is the one that client-go
/// makes of the code; `verb` and `described` are the method and the resource that client-go appends then.
///
/// # Upstream
/// `NewGenericServerResponse` of apimachinery. Of the body at most 200 characters are shown, upstream shows 2048.
pub(super) fn message_of(error: &ApiError, verb: &str, described: Option<&str>) -> String {
    let status = error.status();
    let Some((code, body)) = status.and_then(|status| {
        let body = status.message.strip_prefix(&format!("the server answered {}: ", status.code))?;
        Some((status.code, body))
    }) else {
        return error.message();
    };
    let message = of_code(code, body);
    match described {
        Some(described) => format!("{message} ({verb} {described})"),
        None => message,
    }
}

/// What client-go makes of a response whose body is no status.
pub(super) fn of_code(code: u16, body: &str) -> String {
    let message = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 406 | 415 => body,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => &format!("an error on the server ({body:?}) has prevented the request from succeeding"),
        _ => &format!("the server responded with the status code {code} but did not return more information"),
    };
    message.to_owned()
}

/// How many characters of the message of a metrics API go into a status and an event.
const LONGEST: usize = 1024;

/// A message of a server that is not trusted, shortened.
pub(super) fn shortened(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(LONGEST) {
        message.truncate(end);
        message.push('…');
    }
    message
}
