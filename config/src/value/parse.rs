//! Spellings of values in flags and variables, as in pflag.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::{CertKey, ModuleLevel};

/// Parses a boolean like `strconv.ParseBool`.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses a number like `strconv.ParseInt` with base 0: a base prefix (`0x`, `0o`, `0b`, or `0` for octal) and
/// underscores between digits.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // A prefix counts as a digit, so `0x_ff` and `0_7` are numbers and `_7` is not.
    let prefixed = digits.len() < unsigned.len();
    if digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !prefixed) {
        return None;
    }
    let digits = digits.replace('_', "");
    // `from_str_radix` would take a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits, base).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// A list of 32-bit whole numbers. Nothing at all is an empty list.
pub(super) fn parse_int32s(text: &str) -> Option<Vec<i32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|item| i32::try_from(parse_int(item)?).ok()).collect()
}

/// Parses an address. Empty text means every address, as upstream documents it for `--bind-address`.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    match text.trim() {
        "" => Some(Ipv4Addr::UNSPECIFIED.into()),
        text => text.parse().ok(),
    }
}

/// Pairs as `key=value`, separated as in CSV. A single pair may have commas in it without quotes.
pub(super) fn parse_map(text: &str) -> Option<BTreeMap<String, String>> {
    let pairs = match (text.matches('=').count(), parse_csv(text)) {
        (0, _) if !text.is_empty() => return None,
        (1, Some(fields)) if fields.len() == 1 => fields,
        (1, _) => vec![text.trim_matches('"').to_owned()],
        (_, fields) => fields?,
    };
    let pair = |pair: String| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pairs.into_iter().map(pair).collect()
}

/// `CERT,KEY` or `CERT,KEY:NAME,NAME`. A flag names one pair; a variable may name several, separated by semicolons.
pub(super) fn parse_cert_keys(text: &str) -> Option<Vec<CertKey>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(';').map(parse_cert_key).collect()
}

fn parse_cert_key(text: &str) -> Option<CertKey> {
    let (files, names) = match text.split_once(':') {
        Some((_, names)) if names.trim().is_empty() => return None,
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
        None => (text, Vec::new()),
    };
    let (cert, key) = files.split_once(',').filter(|(_, key)| !key.contains(','))?;
    Some(CertKey { cert: cert.trim().to_owned(), key: key.trim().to_owned(), names })
}

/// `PATTERN=N` pairs, separated by commas; empty ones do not count.
pub(super) fn parse_module_levels(text: &str) -> Option<Vec<ModuleLevel>> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(parse_module_level).collect()
}

fn parse_module_level(pair: &str) -> Option<ModuleLevel> {
    let (pattern, level) = pair.split_once('=').filter(|(pattern, _)| !pattern.is_empty())?;
    let level = level.bytes().all(|byte| byte.is_ascii_digit()).then(|| level.parse().ok())??;
    Some(ModuleLevel { pattern: pattern.to_owned(), level })
}

/// One CSV record as Go's `encoding/csv` reads it. Nothing at all is an empty list.
pub(super) fn parse_csv(text: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = text;
    while !text.is_empty() {
        let (field, after) = if rest.starts_with('"') { quoted_field(rest)? } else { bare_field(rest)? };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    Some(fields)
}

fn bare_field(text: &str) -> Option<(String, &str)> {
    let (field, after) = text.split_at(text.find(',').unwrap_or(text.len()));
    let is_plain = !field.contains(['"', '\n', '\r']);
    is_plain.then(|| (field.to_owned(), after))
}

fn quoted_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text.strip_prefix('"')?;
    loop {
        let (part, after) = rest.split_once('"')?;
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None if after.is_empty() || after.starts_with(',') => return Some((field, after)),
            None => return None,
        }
    }
}
