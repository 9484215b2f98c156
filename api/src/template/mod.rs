//! Pod templates as raw JSON: when two are the same, and a hash that names one.
//!
//! Two templates are the same when the API server would serve them alike for the same pods:
//! - the label [`POD_TEMPLATE_HASH`] takes no part;
//! - `null`, an empty list and an empty map are as absent, and so is an empty structure that Go cannot leave out
//!   (`resources: {}`); an empty structure that may be absent counts (`emptyDir: {}`), a field that we do not know too;
//! - quantities count by value: `1000m` is `1`;
//! - numbers count by value, strings without regard to escapes, members of objects in any order, items of lists in
//!   theirs.
//!
//! # Upstream
//! `deploymentutil.EqualIgnoreHash`, which compares decoded templates with `apiequality.Semantic`; fields that its
//! types do not have are lost there, and count here.

mod shape;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decimal::Decimal;
use crate::decode::Text;
use crate::document::{ObjectWriter, compact, quote};
use crate::fnv::Fnv1a;
use crate::quantity::Quantity;
use shape::{Shape, TEMPLATE};

/// The label that distinguishes the pods of the replica sets of a deployment.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// Returns `true` if two pod templates are the same, except for [`POD_TEMPLATE_HASH`].
///
/// This is an equivalence. Templates that are the same have the same [`template_hash`]. Parts with the same text are
/// not parsed, so that comparing similar templates is cheap.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), serde_json::Error> {
/// use serde_json::value::RawValue;
/// let served: &RawValue = serde_json::from_str(r#"{"metadata":{"labels":{"app":"web"}},"spec":{"overhead":{"cpu":"1"}}}"#)?;
/// let ours: &RawValue = serde_json::from_str(
///     r#"{"spec":{"overhead":{"cpu":"1000m"}},"metadata":{"labels":{"app":"web","pod-template-hash":"b4"},"creationTimestamp":null}}"#,
/// )?;
/// assert!(kcm_api::same_template(served, ours));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn same_template(one: &RawValue, other: &RawValue) -> bool {
    is_same(one, other, &TEMPLATE, 0)
}

/// Returns a short name for a pod template: ten characters that are valid in labels and names and spell no word.
///
/// Templates that are the [same](same_template) have the same hash. It is the same in every release and on every
/// machine, but differs from upstream's, which hashes Go's output for its types. `collision_count` makes another hash
/// if another template has the first. `None` and 0 make different hashes, as upstream.
#[must_use]
pub fn template_hash(template: &RawValue, collision_count: Option<i32>) -> String {
    let mut normal = normal_form(template).into_bytes();
    if let Some(count) = collision_count {
        normal.extend(count.to_le_bytes());
    }
    spell(Fnv1a::new().bytes(&normal).value())
}

/// The last ten digits of a number to the base of 27, in upstream's alphabet, which has no vowels.
fn spell(mut number: u64) -> String {
    const ALPHABET: [char; 27] = [
        'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'z', '2', '4',
        '5', '6', '7', '8', '9',
    ];
    let digit = || {
        let digit = usize::try_from(number % 27).expect("a remainder of 27 must fit");
        number /= 27;
        ALPHABET[digit]
    };
    std::iter::repeat_with(digit).take(10).collect()
}

/// One text for all templates that are the same: JSON, sorted, with one form for each value.
fn normal_form(template: &RawValue) -> String {
    let mut text = String::with_capacity(template.get().len());
    write_normal(&mut text, template, &TEMPLATE, 0);
    text
}

/// One level of a template, in normal form.
enum Value<'a> {
    /// Members that count, sorted by name.
    Object(BTreeMap<Text<'a>, &'a RawValue>),
    List(Vec<&'a RawValue>),
    /// Anything else, as normal text.
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// Largest depth that is compared. Deeper values count by their text, so that no input overflows the stack.
    const DEEPEST: usize = 100;

    fn read(json: &'a RawValue, shape: &Shape, depth: usize) -> Self {
        let text = json.get();
        let value = match text.as_bytes() {
            _ if depth > Self::DEEPEST => None,
            [b'{', ..] => members(text, shape).map(Self::Object),
            [b'[', ..] => parse(text).map(Self::List),
            [b'"', ..] => normal_string(text, shape).map(Self::Text),
            [b'-' | b'0'..=b'9', ..] => normal_number(text, shape).map(|number| Self::Text(number.into())),
            _ => None,
        };
        // Text that cannot be decoded, such as half of a surrogate pair, is its own normal form.
        value.unwrap_or_else(|| {
            let mut own = String::with_capacity(text.len());
            compact(text, &mut own);
            Self::Text(own.into())
        })
    }
}

/// The members of an object that count; of a repeated name the last.
fn members<'a>(text: &'a str, shape: &Shape) -> Option<BTreeMap<Text<'a>, &'a RawValue>> {
    let mut members: BTreeMap<Text<'a>, &RawValue> = parse(text)?;
    members.retain(|name, value| !is_absent(value.get(), shape.member(&name.0)));
    Some(members)
}

/// Returns `true` if the member means the same as no member.
fn is_absent(text: &str, shape: &Shape) -> bool {
    match text.as_bytes() {
        _ if matches!(shape, Shape::Ignored) => true,
        [b'n', ..] => true,
        [b'[', inner @ .., b']'] => inner.trim_ascii().is_empty(),
        // The table of shapes bounds the depth.
        [b'{', ..] if shape.is_absent_when_empty() => members(text, shape).is_some_and(|members| members.is_empty()),
        _ => false,
    }
}

fn normal_string<'a>(text: &'a str, shape: &Shape) -> Option<Cow<'a, str>> {
    let value = || parse::<Text<'a>>(text);
    if let Shape::Quantity = shape
        && let Ok(quantity) = value()?.0.parse::<Quantity>()
    {
        return Some(format!("\"{quantity}\"").into());
    }
    if text.contains('\\') { Some(quote(&value()?.0).into()) } else { Some(text.into()) }
}

fn normal_number(text: &str, shape: &Shape) -> Option<String> {
    match shape {
        Shape::Quantity => text.parse::<Quantity>().ok().map(|quantity| format!("\"{quantity}\"")),
        Shape::Any | Shape::Ignored | Shape::List(_) | Shape::Map(_) | Shape::Struct(_) | Shape::Optional(_) => {
            Decimal::parse_json(text).map(|number| number.to_string())
        }
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

fn is_same(one: &RawValue, other: &RawValue, shape: &'static Shape, depth: usize) -> bool {
    if one.get() == other.get() {
        return true;
    }
    match (Value::read(one, shape, depth), Value::read(other, shape, depth)) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(&other).all(|((name, one), (other_name, other))| {
                    name == other_name && is_same(one, other, shape.member(&name.0), depth + 1)
                })
        }
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len()
                && one.iter().zip(&other).all(|(one, other)| is_same(one, other, shape.item(), depth + 1))
        }
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::Object(_) | Value::List(_) | Value::Text(_), _) => false,
    }
}

fn write_normal(text: &mut String, json: &RawValue, shape: &'static Shape, depth: usize) {
    match Value::read(json, shape, depth) {
        Value::Object(members) => {
            let mut object = ObjectWriter::begin(text);
            for (Text(name), value) in members {
                write_normal(object.member(&quote(&name)), value, shape.member(&name), depth + 1);
            }
            object.end();
        }
        Value::List(items) => {
            text.push('[');
            for (at, item) in items.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_normal(text, item, shape.item(), depth + 1);
            }
            text.push(']');
        }
        Value::Text(normal) => text.push_str(&normal),
    }
}
