//! The declarations of Kubernetes for admission policies, as data.
//!
//! The rest of the crate knows nothing of Kubernetes; this module adds signatures and names of types.

use crate::environment::{Environment, Library};
use crate::types::Type;
use crate::validator::Validator;

/// Returns the environment in which the API server of Kubernetes 1.37 compiles stored expressions, for example of
/// a `ValidatingAdmissionPolicy`, without variables.
///
/// It has every library, also if an older version is emulated, because a stored expression must stay valid.
///
/// ```
/// use kcm_cel::Type;
///
/// let environment = kcm_cel::kubernetes::stored_expressions().with_variable("object", Type::Dyn);
/// assert!(environment.compile("object.spec.replicas <= 5 && isQuantity('5Gi')", &()).is_ok());
///
/// let issues = environment.compile("'10.0.0.1'.family() == 4", &()).unwrap_err();
/// assert_eq!(
///     issues.to_string(),
///     "ERROR: <input>:1:18: found no matching overload for 'family' applied to 'string.()'\n \
///      | '10.0.0.1'.family() == 4\n \
///      | .................^",
/// );
/// ```
#[must_use]
pub fn stored_expressions() -> Environment {
    let mut environment = Environment::standard();
    // The order of upstream's options. It decides the order of the signatures of functions that several libraries
    // declare, such as `indexOf`.
    for text in [include_str!("declarations/kubernetes/urls.txt"), include_str!("declarations/kubernetes/regex.txt")] {
        environment.built_in(text);
    }
    environment.built_in(include_str!("declarations/kubernetes/authz.txt"));
    environment = environment.with(Library::Optional);
    environment.built_in(include_str!("declarations/kubernetes/quantity.txt"));
    environment = environment
        .with_validators(&[
            Validator::Durations,
            Validator::Timestamps,
            Validator::RegularExpressions,
            Validator::Homogeneous,
        ])
        .with(Library::Strings)
        .with(Library::Sets);
    for text in [
        include_str!("declarations/kubernetes/ip.txt"),
        include_str!("declarations/kubernetes/cidr.txt"),
        include_str!("declarations/kubernetes/format.txt"),
        include_str!("declarations/kubernetes/authz_selectors.txt"),
    ] {
        environment.built_in(text);
    }
    environment = environment.with(Library::TwoVariables);
    environment.built_in(include_str!("declarations/kubernetes/semver.txt"));
    environment = environment.with(Library::Lists);
    environment.built_in(include_str!("declarations/kubernetes/lists.txt"));
    let opaque = |name: &str| Type::Opaque(name.into(), [].into());
    environment.with_named_type("net.IP", opaque("net.IP")).with_named_type("net.CIDR", opaque("net.CIDR"))
}
