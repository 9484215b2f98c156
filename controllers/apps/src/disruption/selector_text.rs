//! A label selector as Go prints it, which the event about unmanaged pods has in its message.

use kcm_framework::api::{InternedStr, LabelSelector};

/// The selector of `spec.selector`, which is JSON.
pub(super) fn selector_text(json: Option<&str>) -> String {
    let selector = json.and_then(|json| serde_json::from_str::<Option<LabelSelector>>(json).ok()).flatten();
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}: {value},"));
    let requirements = selector.match_expressions.iter().map(|requirement| {
        let values: Vec<&str> = requirement.values.iter().map(InternedStr::as_str).collect();
        let (key, operator) = (&*requirement.key, &*requirement.operator);
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let (labels, requirements): (Vec<String>, Vec<String>) = (labels.collect(), requirements.collect());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        requirements.concat(),
    )
}
