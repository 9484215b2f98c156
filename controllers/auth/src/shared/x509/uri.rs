//! URIs of alternative names, as Go reads and prints them again.
//!
//! # Upstream
//! `Parse` and `URL.String` of Go's `net/url`, and `domainNameValid` of `crypto/x509`. A user is refused here, and brackets
//! in the host: both occur in no certificate of a cluster, and Go's rules for them are long.

use std::borrow::Cow;

/// A URI that no certificate can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidUri(&'static str);

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The part of a URI that is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Fragment,
}

/// Returns a URI as Go prints it: scheme in lower case, escapes only if they are necessary or were there.
pub(super) fn normalized(text: &str) -> Result<String, InvalidUri> {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    if text.bytes().any(|octet| octet.is_ascii_control()) {
        return Err(InvalidUri("control character"));
    }
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = match rest.split_once('?') {
        // A lone `?` at the end is kept.
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let mut printed = String::with_capacity(text.len() + fragment.len() + 1);
    if !scheme.is_empty() {
        printed.push_str(&scheme.to_ascii_lowercase());
        printed.push(':');
    }
    push_hierarchy(&mut printed, scheme, rest)?;
    if let Some(query) = query {
        printed.push('?');
        printed.push_str(query);
    }
    let fragment = escaped(fragment, Part::Fragment)?;
    if !fragment.is_empty() {
        printed.push('#');
        printed.push_str(&fragment);
    }
    Ok(printed)
}

/// Appends what is between scheme and query.
fn push_hierarchy(printed: &mut String, scheme: &str, rest: &str) -> Result<(), InvalidUri> {
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            printed.push_str(rest);
            return Ok(());
        }
        let segment = rest.split_once('/').map_or(rest, |(segment, _)| segment);
        if segment.contains(':') {
            return Err(InvalidUri("first path segment contains a colon"));
        }
    }
    let mut path = rest;
    let has_authority = !scheme.is_empty() || !rest.starts_with("///");
    if let Some(rest) = rest.strip_prefix("//").filter(|_| has_authority) {
        let (host, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        check_host(scheme, host)?;
        path = after;
        if !host.is_empty() || !path.is_empty() {
            printed.push_str("//");
        }
        printed.push_str(host);
    }
    let path = escaped(path, Part::Path)?;
    if printed.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
        printed.push_str("./");
    }
    printed.push_str(&path);
    Ok(())
}

/// Splits the scheme off; it is empty if there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), InvalidUri> {
    for (position, octet) in text.bytes().enumerate() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b':' if position == 0 => return Err(InvalidUri("missing scheme")),
            b':' => return Ok((&text[..position], &text[position + 1..])),
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            _other => break,
        }
    }
    Ok(("", text))
}

/// Checks that a host with its port is a domain name, as far as Go does.
fn check_host(scheme: &str, host: &str) -> Result<(), InvalidUri> {
    if host.is_empty() {
        return Ok(());
    }
    let is_host = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:\"<>".contains(&octet);
    if !host.bytes().all(is_host) {
        return Err(InvalidUri("invalid host"));
    }
    // Other schemes have lists of hosts with ports.
    let is_strict = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let port = if is_strict { host.split_once(':') } else { host.rsplit_once(':') }.map_or("", |(_, port)| port);
    if !port.bytes().all(|octet| octet.is_ascii_digit()) {
        return Err(InvalidUri("invalid port"));
    }
    if host.split('.').any(str::is_empty) {
        return Err(InvalidUri("invalid domain"));
    }
    Ok(())
}

/// Returns a path or fragment as Go prints it: unchanged if all its characters may stand there, else decoded and escaped.
fn escaped(text: &str, part: Part) -> Result<Cow<'_, str>, InvalidUri> {
    let decoded = decoded(text)?;
    let may_stay = |octet: u8| match octet {
        b'!' | b'\'' | b'(' | b')' | b'*' | b'[' | b']' | b'%' => true,
        other => is_kept(other, part),
    };
    if text.bytes().all(may_stay) {
        return Ok(Cow::Borrowed(text));
    }
    let mut printed = String::with_capacity(text.len() + 8);
    for octet in decoded {
        if is_kept(octet, part) {
            printed.push(char::from(octet));
        } else {
            printed.push('%');
            printed.extend([octet >> 4, octet & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
    Ok(Cow::Owned(printed))
}

/// Returns `true` for characters that Go does not escape.
fn is_kept(octet: u8, part: Part) -> bool {
    octet.is_ascii_alphanumeric()
        || b"-_.~$&+,/:;=@".contains(&octet)
        || match part {
            Part::Path => false,
            Part::Fragment => b"!()*?".contains(&octet),
        }
}

fn decoded(text: &str) -> Result<Vec<u8>, InvalidUri> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let digits = digits.filter(|digits| digits.bytes().all(|octet| octet.is_ascii_hexdigit()));
            let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            octets.push(value.ok_or(InvalidUri("invalid escape"))?);
            rest = &after[2..];
        } else {
            octets.push(octet);
        }
    }
    Ok(octets)
}
