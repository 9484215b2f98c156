//! Responses that look like mistakes of the server and are upstream's.

/// Beginnings of messages of code 500 that kube-apiserver also returns for such requests.
const OF_500: &[&str] = &[
    // Strategic merge patches.
    "cannot merge lists without merge key for ",
    "no elements in any of the given slices",
    "merging lists cannot yet be specified in the patch",
    "The order in patch list:",
    "list element types are not identical:",
    "value for key ",
    "expected a map[string]interface {}, but received a ",
    "expected a []interface {}, but received a ",
    "map: map[",
    "unable to find api field in struct ",
    "unknown patch type: ",
    // Applies.
    "failed to create typed patch object (",
    "failed to convert new object (",
    // Versions.
    "resourceVersion should not be set on objects to be created",
    "strconv.ParseUint: parsing ",
    "resourceVersion: Invalid value: ",
    // Subresources.
    "This pod has more than one PodDisruptionBudget",
    "Non-matching dry-run options in request and content: ",
    "Internal error occurred: the spec replicas field ",
    "target.kind: Unsupported value: ",
    "target.name: Required value",
    "[target.kind: Unsupported value: ",
];

/// Plain bodies that kube-apiserver returns instead of a `Status`, with their codes and the paths below which it does.
const PLAIN: &[(u16, &str, &str)] = &[(404, "", "404 page not found\n"), (404, "/openapi/v3/", "")];

pub(crate) fn is_upstreams_500(message: &str) -> bool {
    OF_500.iter().any(|known| message.starts_with(known))
}

pub(crate) fn is_plain(code: u16, path: &str, text: &str) -> bool {
    PLAIN.iter().any(|(known, below, all)| *known == code && path.starts_with(below) && text == *all)
}
