//! The flags in the log.

use kcm_config::{Effective, Kind, Value};

use super::layer::UNSTRUCTURED;
use super::quote::quote;

/// Logs every flag with its value from `-v=1` on, as upstream does at its start.
///
/// Values of flags are not secret: they name files, and the content of these files is not printed.
pub(crate) fn log_flags(settings: &Effective) {
    let mut rows: Vec<_> = settings.rows().iter().collect();
    rows.sort_by_key(|row| row.name);
    for row in rows {
        let (Some(flag), Some(value)) = (row.flag(), settings.value(row.name)) else { continue };
        let mut quoted = String::new();
        quote(&mut quoted, &go_string(row.kind(), value));
        tracing::info!(target: UNSTRUCTURED, v = 1, "FLAG: --{flag}={quoted}");
    }
}

/// The value as the `String` of its type in pflag prints it.
fn go_string(kind: Kind, value: &Value) -> String {
    match value {
        // The component stands before each gate, and is empty for Kubernetes.
        Value::Strings(gates) if kind == Kind::FeatureGates => {
            let gates: Vec<String> =
                gates.iter().map(|gate| if gate.contains(':') { gate.clone() } else { format!(":{gate}") }).collect();
            gates.join(",")
        }
        Value::Strings(_) | Value::Int32s(_) | Value::CertKeys(_) => format!("[{value}]"),
        Value::Bool(_)
        | Value::Int32(_)
        | Value::Int(_)
        | Value::Float32(_)
        | Value::Float64(_)
        | Value::Duration(_)
        | Value::String(_)
        | Value::Ip(_)
        | Value::Map(_)
        | Value::Quantity(_)
        | Value::ModuleLevels(_)
        | Value::Objects(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_pflags() {
        let strings = |items: &[&str]| Value::Strings(items.iter().map(|&item| item.to_owned()).collect());
        assert_eq!(go_string(Kind::Strings, &strings(&["*", "-job"])), "[*,-job]");
        assert_eq!(go_string(Kind::Strings, &strings(&[])), "[]");
        assert_eq!(go_string(Kind::FeatureGates, &strings(&["A=true", "kube:B=false"])), ":A=true,kube:B=false");
        assert_eq!(go_string(Kind::Level, &Value::Int32(2)), "2");
    }
}
