//! PEM: blocks as Go finds them, and certificates.
//!
//! # Upstream
//! `encoding/pem` of Go: text before a block is skipped, and a block that cannot be read.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";
const LINE: usize = 64;

/// Go accepts unused bits of the last character that are not zero.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// A block of PEM. It may hold a private key, so it has no `Debug`, and is zeroed when it is dropped.
pub(super) struct Block<'a> {
    /// Text between `BEGIN` and the dashes.
    pub(super) label: &'a [u8],
    /// `true` if there are headers, as an encrypted key has.
    pub(super) has_headers: bool,
    pub(super) der: Zeroizing<Vec<u8>>,
}

/// The blocks of a text, in order.
pub(super) struct Blocks<'a>(&'a [u8]);

/// Returns the blocks of `text`.
pub(super) const fn blocks(text: &[u8]) -> Blocks<'_> {
    Blocks(text)
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        loop {
            let end = find(self.0, END)?;
            let after = &self.0[end + END.len()..];
            let block = block(&self.0[..=end], after);
            self.0 = after;
            if let Some((block, rest)) = block {
                self.0 = rest;
                return Some(block);
            }
        }
    }
}

/// Reads the last block that begins in `before` and ends with the line after `after` begins.
fn block<'a>(before: &'a [u8], after: &'a [u8]) -> Option<(Block<'a>, &'a [u8])> {
    let begin = before.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
    if begin > 0 && before[begin - 1] != b'\n' {
        return None;
    }
    let (first, mut body) = line(&before[begin + BEGIN.len()..]);
    let label = first.strip_suffix(DASHES)?;
    let mut has_headers = false;
    while !body.is_empty() {
        let (header, rest) = line(body);
        if !header.contains(&b':') {
            break;
        }
        has_headers = true;
        body = rest;
    }
    if has_headers && body.is_empty() {
        return None;
    }
    let trailer = after.strip_prefix(label)?.strip_prefix(DASHES)?;
    let (blank, rest) = line(trailer);
    if !blank.is_empty() {
        return None;
    }
    let text: Zeroizing<Vec<u8>> =
        Zeroizing::new(body.iter().copied().filter(|octet| !matches!(octet, b' ' | b'\t' | b'\r' | b'\n')).collect());
    let der = Zeroizing::new(BASE64.decode(&*text).ok()?);
    Some((Block { label, has_headers, der }, rest))
}

/// Returns the first line without white space at its end, and the text after it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|octet| *octet == b'\n') {
        Some(end) => (text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]), &text[end + 1..]),
        None => (text, &[][..]),
    };
    let length = line.iter().rposition(|octet| !matches!(octet, b' ' | b'\t')).map_or(0, |last| last + 1);
    (&line[..length], rest)
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let found = from + text[from..].iter().position(|octet| *octet == pattern[0])?;
        if text[found..].starts_with(pattern) {
            return Some(found);
        }
        from = found + 1;
    }
}

/// Returns a certificate in PEM.
pub(super) fn certificate(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut pem = String::with_capacity(text.len() + text.len() / LINE + 64);
    pem.push_str("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
