//! Rules of names, with upstream's messages.
//!
//! # Upstream
//! `apimachinery/pkg/util/validation` and `api/validate/content`

use std::net::IpAddr;

use kcm_api::name::{is_dns_label, is_dns_subdomain, is_label_key, is_label_value};

use super::field_path::{Errors, FieldPath};

pub(super) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const QUALIFIED: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// A rule: the problems of a string.
pub(super) type Rule = fn(&str) -> Vec<String>;

impl FieldPath<'_, '_> {
    /// Refuses a string that breaks the rule.
    pub(super) fn follows(&self, rule: Rule, errors: &mut Errors) {
        self.refuse(self.text(), rule, errors);
    }

    /// Refuses an empty string, and a string that breaks the rule.
    pub(super) fn must_follow(&self, rule: Rule, errors: &mut Errors) {
        self.must_be_set("", errors);
        self.may_follow(rule, errors);
    }

    /// Refuses a string that is not empty and breaks the rule.
    pub(super) fn may_follow(&self, rule: Rule, errors: &mut Errors) {
        if !self.is_empty() {
            self.follows(rule, errors);
        }
    }

    /// Refuses `text` at this path if it breaks the rule.
    pub(super) fn refuse(&self, text: &str, rule: Rule, errors: &mut Errors) {
        errors.extend(rule(text).into_iter().map(|problem| self.refused(text, problem)));
    }
}

fn too_long(longest: usize) -> String {
    format!("must be no more than {longest} characters")
}

pub(super) fn subdomain(name: &str) -> Vec<String> {
    if is_dns_subdomain(name) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push(too_long(253));
    }
    if !name.split('.').all(is_part_of_subdomain) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

fn is_part_of_subdomain(part: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('-') && !part.ends_with('-')
}

pub(super) fn label(name: &str) -> Vec<String> {
    if is_dns_label(name) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_part_of_subdomain(name) {
        let has_only_dots = name.split('.').all(is_part_of_subdomain);
        problems.push(if has_only_dots { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    problems
}

/// A name that is a segment of a path.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].into_iter().filter(|bad| name.contains(*bad)).map(|bad| format!("may not contain '{bad}'")).collect()
}

/// The key of a label.
pub(super) fn qualified(key: &str) -> Vec<String> {
    if is_label_key(key) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            name
        }
        _ => return vec![QUALIFIED.to_owned()],
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    let start = name.char_indices().nth(63).map_or(name, |(at, _)| name.split_at(at).0);
    if start.is_empty() || !is_label_value(start) {
        problems.push(NAME_PART.to_owned());
    }
    problems
}

pub(super) fn label_value(value: &str) -> Vec<String> {
    if is_label_value(value) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !value.bytes().all(is_inner) || value.starts_with(['-', '_', '.']) || value.ends_with(['-', '_', '.']) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

/// The key of a config map or secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push(too_long(253));
    }
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        problems.push(CONFIG_KEY.to_owned());
    }
    match key {
        "." | ".." => problems.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push(too_long(15));
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') || name.is_empty() {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// The name of an environment variable.
pub(super) fn variable(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

pub(super) fn http_header(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    vec!["a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')".to_owned()]
}

/// `*.` and a subdomain.
pub(super) fn wildcard(name: &str) -> Vec<String> {
    if name.strip_prefix("*.").is_some_and(is_dns_subdomain) { Vec::new() } else { vec![WILDCARD.to_owned()] }
}

pub(super) fn ip(address: &str) -> Vec<String> {
    if address.parse::<IpAddr>().is_ok() {
        return Vec::new();
    }
    vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
}

pub(super) fn cidr(block: &str) -> Vec<String> {
    if network(block).is_some() {
        return Vec::new();
    }
    vec!["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)".to_owned()]
}

/// The address and the length of the prefix.
pub(super) fn network(block: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = block.split_once('/')?;
    let (address, length): (IpAddr, u32) = (address.parse().ok()?, length.parse().ok()?);
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// Refuses numbers that are not ports.
pub(super) fn port_number(field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if !field_path.number().is_some_and(|number| (1..=65_535).contains(&number)) {
        errors.push(field_path.refused(field_path.number().unwrap_or(0), PORT_RANGE));
    }
}

/// A port by number or by name.
pub(super) fn port(field_path: &FieldPath<'_, '_>, errors: &mut Errors) {
    if field_path.value.is_string() {
        field_path.follows(port_name, errors);
    } else {
        port_number(field_path, errors);
    }
}
