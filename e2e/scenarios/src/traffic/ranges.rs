//! The script of service CIDRs. Addresses are those of services, since the API server deletes others in time.

use super::ROUNDS;

pub(super) const CHANGES: [&[&str]; ROUNDS] = [
    &[
        "cidr small 10.71.0.0/24",
        "cidr large 10.71.0.0/16",
        "cidr used 10.72.0.0/24",
        "cidr dual 10.73.0.0/24,fd73::/112",
        "cidr half 10.74.0.0/24,fd74::/112",
        "cidr foreign 10.76.0.0/24",
        "address 10.76.0.7 a-person",
        "cidr twin-a 10.77.0.0/24",
        "cidr twin-b 10.77.0.0/24",
        "cidr empty 10.78.0.0/24",
        "cidr blocked 10.79.0.0/24",
        "cidr rest 10.80.0.0/24,fd80::/112",
    ],
    &[
        r#"set servicecidrs/large {"metadata":{"finalizers":null}}"#,
        r#"set servicecidrs/used/status {"status":{"conditions":[]}}"#,
        r#"set servicecidrs/twin-b {"metadata":{"finalizers":["example.com/hold","networking.k8s.io/service-cidr-finalizer"]}}"#,
        r#"set servicecidrs/empty/status {"status":{"conditions":[{"type":"Ready","status":"False","reason":"Person","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
        "cidr halves 10.74.0.0/16",
        r#"service of-small - {"clusterIP":"10.71.0.7"}"#,
        r#"service of-used - {"clusterIP":"10.72.0.7"}"#,
        r#"service of-dual - {"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.73.0.7","clusterIPs":["10.73.0.7","fd73::7"]}"#,
        r#"service of-half - {"ipFamilies":["IPv6"],"clusterIP":"fd74::9"}"#,
        r#"service of-twin - {"clusterIP":"10.77.0.7"}"#,
        r#"service of-blocked - {"clusterIP":"10.79.0.7"}"#,
    ],
    &[
        "delete servicecidrs/small",
        "delete servicecidrs/used",
        "delete servicecidrs/dual",
        "delete servicecidrs/half",
        "delete servicecidrs/empty",
        "delete servicecidrs/foreign",
        "delete servicecidrs/twin-a",
        "delete servicecidrs/blocked",
    ],
    &["delete services/of-used", "cidr dual-six fd73::/100"],
    &["cidr half-six fd74::/100", r#"set servicecidrs/large {"metadata":{"labels":{"team":"a"}}}"#],
    &["delete services/of-small", "delete services/of-twin"],
];

/// While no manager runs.
pub(super) const BETWEEN: &[&str] = &[
    "delete services/of-blocked",
    r#"set servicecidrs/halves {"metadata":{"finalizers":null}}"#,
    "cidr late 10.81.0.0/24",
];
