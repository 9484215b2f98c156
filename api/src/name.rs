//! Names: validation, and generation from a base.

use std::iter;

/// The characters of random suffixes: without vowels and similar characters, so that they form no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const LONGEST: usize = 63;
const SUFFIX: usize = 5;

/// Returns a new name: `base`, cut so that the name has at most 63 bytes, and five characters chosen by `random`.
///
/// # Upstream
/// `generateName` of the API server.
#[must_use]
pub fn generate_name(base: &str, mut random: impl FnMut() -> u32) -> String {
    let base = &base[..base.floor_char_boundary(LONGEST - SUFFIX)];
    let suffix = iter::repeat_with(|| {
        let at = random() as usize % ALPHABET.len();
        char::from(ALPHABET[at])
    });
    base.chars().chain(suffix.take(SUFFIX)).collect()
}

/// Returns `true` if `name` is a DNS-1123 subdomain, the form of most objects' names.
///
/// # Upstream
/// At most 253 bytes in all; the parts between dots have no limit of their own.
#[must_use]
pub fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_label_of_any_length)
}

/// Returns `true` if `name` is a DNS-1123 label: lower-case letters, digits and inner hyphens, at most 63 bytes.
#[must_use]
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= LONGEST && is_dns_label_of_any_length(name)
}

/// Returns `true` if `key` is valid as the key of a label or annotation: `name`, or `prefix/name` with a DNS subdomain.
#[must_use]
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_qualified(name),
        None => is_qualified(key),
    }
}

/// Returns `true` if `value` is valid as the value of a label: empty, or letters, digits and inner `-`, `_`, `.`, at
/// most 63 bytes.
#[must_use]
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified(value)
}

fn is_dns_label_of_any_length(name: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(name, end, |byte| end(byte) || byte == b'-')
}

fn is_qualified(name: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_alphanumeric();
    name.len() <= LONGEST && is_framed(name, end, |byte| end(byte) || b"-_.".contains(&byte))
}

/// Returns `true` if the first and the last byte pass `end`, and the bytes between them pass `inner`.
fn is_framed(name: &str, end: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match name.as_bytes() {
        [] => false,
        [only] => end(*only),
        [first, middle @ .., last] => end(*first) && end(*last) && middle.iter().all(|byte| inner(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> impl FnMut() -> u32 {
        let mut next = 0;
        move || {
            next += 1;
            next - 1
        }
    }

    #[test]
    fn appends_five_characters_of_the_alphabet() {
        assert_eq!(generate_name("web-", counting()), "web-bcdfg");
        assert_eq!(generate_name("web-", || 26), "web-99999");
        assert_eq!(generate_name("web-", || 27), "web-bbbbb");
    }

    #[test]
    fn cuts_the_base_so_that_the_whole_fits_63_bytes() {
        for length in [57, 58, 59, 253] {
            let name = generate_name(&"a".repeat(length), counting());
            assert_eq!(name, "a".repeat(length.min(58)) + "bcdfg");
        }
        assert_eq!(generate_name(&"ä".repeat(40), counting()), "ä".repeat(29) + "bcdfg");
        assert_eq!(
            generate_name(&("b".to_owned() + &"ä".repeat(40)), counting()),
            "b".to_owned() + &"ä".repeat(28) + "bcdfg"
        );
    }

    #[test]
    fn names_are_dns_subdomains() {
        for good in ["a", "a-b", "1.2", "a.b-c.d", &"a".repeat(253), &("a".repeat(100) + ".b")] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "-a", "a-", "A", "a_b", "a b", "ä", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
        assert!(is_dns_label(&"a".repeat(63)));
        assert!(!is_dns_label(&"a".repeat(64)));
        assert!(!is_dns_label("a.b"));
    }

    #[test]
    fn label_keys_may_have_a_prefix() {
        for good in ["a", "A_b.c-d", "x/y", "example.com/My.Name", &("a".repeat(253) + "/b"), &"k".repeat(63)] {
            assert!(is_label_key(good), "{good}");
        }
        for bad in ["", "/", "a/", "/a", "a/b/c", "A/b", "-a", "a-", "a b", &"k".repeat(64), &("a".repeat(254) + "/b")]
        {
            assert!(!is_label_key(bad), "{bad}");
        }
    }

    #[test]
    fn label_values_may_be_empty() {
        for good in ["", "a", "1", "A.b_c-9", &"v".repeat(63)] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["a/b", "-", "a.", " ", "a b", &"v".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
