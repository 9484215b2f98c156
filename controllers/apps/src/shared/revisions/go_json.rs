//! JSON as Go's `encoding/json` writes what it has read into a map.

use serde_json::{Number, Value};

/// The value as Go writes it: keys sorted, no whitespace, numbers as 64-bit floating point numbers.
///
/// `creationTimestamp: null` is left out, as by upstream's types since Kubernetes 1.34; earlier API servers return it in
/// every template.
pub(super) fn go_json(value: &Value) -> String {
    let mut json = String::new();
    write_value(&mut json, value);
    json
}

fn write_value(json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Bool(flag) => json.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(json, number),
        Value::String(text) => write_string(json, text),
        Value::Array(items) => {
            json.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                write_value(json, item);
            }
            json.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().filter(|member| !is_unset_time(*member)).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            json.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                write_string(json, name);
                json.push(':');
                write_value(json, value);
            }
            json.push('}');
        }
    }
}

fn is_unset_time((name, value): (&String, &Value)) -> bool {
    name == "creationTimestamp" && value.is_null()
}

/// Beyond this, a 64-bit floating point number does not hold every whole number.
const LARGEST_EXACT: u64 = 1 << 53;

fn write_number(json: &mut String, number: &Number) {
    let is_exact = number.as_i64().is_some_and(|number| number.unsigned_abs() <= LARGEST_EXACT);
    let float = number.as_f64().filter(|_| !is_exact);
    match float {
        None => json.push_str(&number.to_string()),
        // Go writes the shortest digits, with an exponent where they are many: 1e+21, 1e-7.
        Some(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => {
            let digits = format!("{float:e}");
            let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            json.extend([mantissa, "e", sign, exponent]);
        }
        Some(float) => json.push_str(&float.to_string()),
    }
}

/// Beside what JSON requires, Go escapes what HTML and JavaScript interpret: `<`, `>`, `&`, U+2028 and U+2029.
fn write_string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let escape = format!("\\u{:04x}", u32::from(character));
                json.push_str(&escape);
            }
            _ => json.push(character),
        }
    }
    json.push('"');
}
