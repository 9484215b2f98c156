//! Values of JSON, as Go prints them in errors.

use super::json::Json;

/// A value of JSON, as `%v` prints what it is decoded to.
pub(super) fn print(json: &Json) -> String {
    let mut out = String::new();
    print_into(json, &mut out);
    out
}

fn print_into(json: &Json, out: &mut String) {
    match json {
        Json::Null => out.push_str("<nil>"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(text) | Json::String(text) => out.push_str(text),
        Json::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                print_into(item, out);
            }
            out.push(']');
        }
        Json::Map(entries) => {
            // Of a key that is there twice the last value counts.
            let sorted: std::collections::BTreeMap<&str, &Json> =
                entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
            out.push_str("map[");
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                print_into(value, out);
            }
            out.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_printed_in_the_order_of_their_keys() {
        let json = Json::parse(br#"{"b":[1,null,"x"],"a":{"c":true},"b":2.5}"#).expect("the text is JSON");
        assert_eq!(print(&json), "map[a:map[c:true] b:2.5]");
    }
}
