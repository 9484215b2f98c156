//! The field manager of a write: the name that owns the written fields in `metadata.managedFields`.

use super::query::Query;
use super::target::Verb;
use crate::status::{FieldError, Status};

/// Maximum length; longer names are rejected, and truncated if they come from the user agent.
const LONGEST_MANAGER: usize = 128;

/// The field manager of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldManager<'a> {
    /// The name of the field manager.
    pub(crate) name: &'a str,
    /// Server-side apply: the object already has its managed fields.
    pub(crate) applied: bool,
}

impl FieldManager<'static> {
    /// The manager of writes through [`Sandbox`](crate::Sandbox) itself.
    pub(crate) const DIRECT: Self = Self { name: "sandbox", applied: false };
}

/// Returns the field manager of a write: the `fieldManager` parameter, or the program name in `User-Agent`.
///
/// # Errors
/// 422 for a name that is too long or not printable, for an apply without a name, and for force without an apply.
pub(crate) fn manager_of(verb: Verb, query: &Query, applies: bool, user_agent: &str) -> Result<String, Status> {
    let options = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // Deletions have no such parameter.
        Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => return Ok(String::new()),
    };
    let given = query.get("fieldManager");
    let mut errors = Vec::new();
    if applies && given.is_none() {
        errors.push(FieldError::required("fieldManager", "is required for apply patch"));
    }
    if verb == Verb::Patch && !applies && query.flag("force").is_some() {
        errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
    }
    let given = given.unwrap_or_default();
    if given.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long("fieldManager", LONGEST_MANAGER));
    }
    for (at, letter) in given.char_indices().filter(|(_, letter)| !is_printable(*letter)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        errors.push(FieldError::invalid("fieldManager", given, why));
    }
    if !errors.is_empty() {
        return Err(Status::invalid("meta.k8s.io", options, "", &errors));
    }
    Ok(if given.is_empty() { name_of_program(user_agent) } else { given.to_owned() })
}

/// Returns the printable part before the first slash, truncated to the maximum length.
fn name_of_program(user_agent: &str) -> String {
    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for letter in program.chars().filter(|letter| is_printable(*letter)) {
        if name.len() + letter.len_utf8() > LONGEST_MANAGER {
            break;
        }
        name.push(letter);
    }
    name
}

fn is_printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(verb: Verb, query: &str, applies: bool, program: &str) -> Result<String, String> {
        manager_of(verb, &Query::parse(query), applies, program).map_err(|status| status.message)
    }

    #[test]
    fn the_manager_is_the_parameter_or_the_user_agent() {
        let put = |query, program: &str| name(Verb::Update, query, false, program);
        assert_eq!(put("fieldManager=me", "kubectl/v1.36"), Ok("me".to_owned()));
        assert_eq!(put("", "kubectl/v1.36 (linux)"), Ok("kubectl".to_owned()));
        assert_eq!(put("", &format!("{}é/1", "a".repeat(127))), Ok("a".repeat(127)));
        assert_eq!(put("", "a\nb/1"), Ok("ab".to_owned()));
    }

    #[test]
    fn invalid_parameters_are_rejected_with_upstreams_messages() {
        let long = format!("fieldManager={}", "a".repeat(129));
        let cases = [
            ("", true, "fieldManager: Required value: is required for apply patch"),
            ("force=true", false, "force: Forbidden: may not be specified for non-apply patch"),
            (long.as_str(), false, "fieldManager: Too long: may not be more than 128 bytes"),
            (
                "fieldManager=a%0Ab",
                false,
                "fieldManager: Invalid value: \"a\\nb\": invalid character U+000A (at position 1)",
            ),
        ];
        for (query, applies, why) in cases {
            let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {why}");
            assert_eq!(name(Verb::Patch, query, applies, "curl/8"), Err(message));
        }
    }
}
