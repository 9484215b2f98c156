//! The script of services: their endpoints and slices, of both families, with hints, and those that are mirrored.

use super::ROUNDS;

/// Services that select pods.
pub(super) const SELECTING: [&[&str]; ROUNDS] = [
    &[
        "node n-a a",
        "node n-b b",
        "node n-c c",
        "pod a1 web n-a",
        "pod a2 web n-a",
        "pod b1 web n-b",
        "pod b2 web n-b",
        "pod c1 web n-c",
        "pod c2 web n-c",
        "ready a1 1",
        "ready a2 2",
        "ready b1 3",
        "ready b2 4",
        "ready c1 5",
        "ready c2 6",
        "service web web {}",
        r#"service dual web {"ipFamilyPolicy":"RequireDualStack"}"#,
        r#"service six web {"ipFamilies":["IPv6"]}"#,
        r#"service head web {"clusterIP":"None","ipFamilyPolicy":"RequireDualStack"}"#,
        r#"service near web {"trafficDistribution":"PreferSameZone","ipFamilyPolicy":"RequireDualStack"}"#,
        r#"service same rest {"trafficDistribution":"PreferSameNode"}"#,
        r#"service topology web {"ipFamilyPolicy":"RequireDualStack"}"#,
        r#"set services/topology {"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Auto"}}}"#,
        "pod r1 rest n-a",
        "ready r1 7",
        r#"service rest rest {"ipFamilyPolicy":"RequireDualStack","trafficDistribution":"PreferSameZone"}"#,
    ],
    &[
        "unready b1 3",
        r#"set services/near {"spec":{"trafficDistribution":"PreferSameNode"}}"#,
        r#"set services/web {"metadata":{"labels":{"team":"a"}}}"#,
        r#"set services/head {"spec":{"publishNotReadyAddresses":true}}"#,
        r#"set services/six {"spec":{"ports":[{"name":"http","port":80,"targetPort":"other"},{"name":"more","port":81,"targetPort":"http"}]}}"#,
    ],
    &[
        "ready b1 3",
        r#"set services/dual {"spec":{"ipFamilyPolicy":"SingleStack"}}"#,
        r#"set services/same {"spec":{"trafficDistribution":null}}"#,
    ],
    &[
        // Apart from changes of pods: with these, the events of hints depend on how many changes one sync has seen.
        r#"set services/topology {"metadata":{"annotations":{"service.kubernetes.io/topology-mode":"Disabled"}}}"#,
        r#"set services/dual {"spec":{"ipFamilyPolicy":"RequireDualStack"}}"#,
        r#"set services/web {"spec":{"selector":{"app":"none"}}}"#,
        "delete endpoints/six",
        r#"set endpoints/head {"subsets":[]}"#,
        "mark-slices near",
    ],
    &[
        r#"set services/web {"spec":{"selector":{"app":"web"}}}"#,
        r#"set pods/c1 {"metadata":{"labels":{"app":"other"}}}"#,
        r#"set pods/a2 {"metadata":{"finalizers":["example.com/hold"]}}"#,
        r#"set services/head {"spec":{"publishNotReadyAddresses":false}}"#,
        r#"set services/six {"spec":{"ports":[{"name":"http","port":80,"targetPort":7070}]}}"#,
    ],
    &[
        r#"set pods/c1 {"metadata":{"labels":{"app":"web"}}}"#,
        "delete pods/a2",
        "delete-slices head",
        "delete services/same",
    ],
];

/// While no manager runs.
pub(super) const SELECTING_BETWEEN: &[&str] = &[
    r#"set pods/a2 {"metadata":{"finalizers":null}}"#,
    "unready b2 4",
    "service late web {}",
    r#"set services/six {"spec":{"selector":{"app":"none"}}}"#,
    "delete services/web",
];

/// Services without a selector, whose endpoints a person writes.
pub(super) const MIRRORED: [&[&str]; ROUNDS] = [
    &[
        "service plain - {}",
        r#"create endpoints {"metadata":{"name":"plain"},"subsets":[{"addresses":[{"ip":"10.9.1.1"},{"ip":"fd00:9:1::1"}],"ports":[{"name":"http","port":80}]}]}"#,
        "service two - {}",
        r#"create endpoints {"metadata":{"name":"two"},"subsets":[{"addresses":[{"ip":"10.9.1.2"}],"ports":[{"name":"a","port":1}]},{"addresses":[{"ip":"10.9.1.2"},{"ip":"10.9.1.3"}],"ports":[{"name":"b","port":2}]}]}"#,
        "service leader - {}",
        r#"create endpoints {"metadata":{"name":"leader","annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}},"subsets":[{"addresses":[{"ip":"10.9.1.4"}],"ports":[{"port":1}]}]}"#,
        r#"create endpoints {"metadata":{"name":"lone"},"subsets":[{"addresses":[{"ip":"10.9.1.5"}],"ports":[{"port":1}]}]}"#,
        "service turns rest {}",
        "service still - {}",
        r#"create endpoints {"metadata":{"name":"still"},"subsets":[{"addresses":[{"ip":"10.9.1.6"},{"ip":"fd00:9:1::6"}],"ports":[{"port":1}]}]}"#,
    ],
    &[
        r#"set endpoints/plain {"subsets":[{"addresses":[{"ip":"10.9.1.1"}],"notReadyAddresses":[{"ip":"fd00:9:1::1"}],"ports":[{"name":"http","port":80}]}]}"#,
        r#"set endpoints/two {"metadata":{"labels":{"team":"a"}}}"#,
        r#"set endpoints/leader {"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":null}}}"#,
        "service lone - {}",
        r#"set services/turns {"spec":{"selector":null}}"#,
    ],
    &[
        r#"set endpoints/plain {"metadata":{"annotations":{"example.com/note":"1"}}}"#,
        r#"set endpoints/two {"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}}"#,
        r#"set endpoints/leader {"subsets":[{"notReadyAddresses":[{"ip":"10.9.1.4","nodeName":"n-a","hostname":"leader"}],"ports":[{"port":1,"protocol":"UDP"}]}]}"#,
        "delete services/lone",
        r#"set services/turns {"spec":{"selector":{"app":"rest"}}}"#,
    ],
    &[
        r#"set endpoints/two {"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":null}}}"#,
        "delete-slices plain",
        "delete endpoints/turns",
        "service soon - {}",
        r#"set endpoints/leader {"metadata":{"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-01-01T00:00:00Z"}}}"#,
    ],
    &[
        "mark-slices plain",
        r#"create endpoints {"metadata":{"name":"soon"},"subsets":[{"addresses":[{"ip":"10.9.1.7","targetRef":{"kind":"Pod","namespace":"default","name":"a1"}}],"ports":[{"port":1}]}]}"#,
        "delete endpoints/leader",
        r#"set endpoints/two {"metadata":{"labels":{"team":null}}}"#,
    ],
    &[
        r#"set endpoints/plain {"subsets":[]}"#,
        r#"set endpoints/two {"subsets":[{"addresses":[{"ip":"10.9.1.3"}],"ports":[{"name":"b","port":2}]}]}"#,
        "delete services/leader",
    ],
];

/// While no manager runs.
pub(super) const MIRRORED_BETWEEN: &[&str] = &[
    r#"set endpoints/plain {"subsets":[{"addresses":[{"ip":"10.9.1.8"}],"ports":[{"name":"http","port":80}]}]}"#,
    "delete endpoints/soon",
];
