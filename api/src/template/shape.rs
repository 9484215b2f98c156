//! The places of quantities in a template, and the places of structures that mean the same empty as absent.

use Shape::{Any, Ignored, List, Map, Optional, Quantity, Struct};

/// Facts about a value that follow from its place.
///
/// The API server leaves out empty maps and writes plain structures even if they are empty: neither has a meaning. An
/// empty structure that may be absent has a meaning: `namespaceSelector: {}` means all namespaces, `emptyDir: {}` is a
/// directory. Unknown fields are treated the same.
pub(super) enum Shape {
    /// Nothing is known about the value.
    Any,
    /// Takes no part in the comparison.
    Ignored,
    /// An amount of a resource, as text or as a number.
    Quantity,
    /// A list of such values.
    List(&'static Self),
    /// A map of names to such values; empty it is as absent.
    Map(&'static Self),
    /// A structure that is as absent when empty; members that are not named are [`Any`].
    Struct(Fields),
    /// A structure that counts also when empty; members that are not named are [`Any`].
    Optional(Fields),
}

type Fields = &'static [(&'static str, Shape)];

impl Shape {
    /// The shape of the member of that name.
    pub(super) fn member(&self, name: &str) -> &'static Self {
        match self {
            Map(value) => value,
            Struct(fields) | Optional(fields) => {
                fields.iter().find(|(field, _)| *field == name).map_or(&Any, |(_, shape)| shape)
            }
            Any | Ignored | Quantity | List(_) => &Any,
        }
    }

    /// The shape of each item of a list.
    pub(super) const fn item(&self) -> &'static Self {
        match self {
            List(item) => item,
            Any | Ignored | Quantity | Map(_) | Struct(_) | Optional(_) => &Any,
        }
    }

    /// Returns `true` if an empty object in this place means the same as no object.
    pub(super) const fn is_absent_when_empty(&self) -> bool {
        match self {
            Map(_) | Struct(_) => true,
            Any | Ignored | Quantity | List(_) | Optional(_) => false,
        }
    }
}

/// A pod template.
///
/// # Upstream
/// `core/v1` `PodTemplateSpec`: the fields of type `resource.Quantity` and `ResourceList`, the maps, and the
/// structures that are not pointers.
pub(super) static TEMPLATE: Shape = Struct(&[
    ("metadata", Struct(&[("labels", Struct(&[(super::POD_TEMPLATE_HASH, Ignored)])), ("annotations", STRINGS)])),
    ("spec", POD),
]);

const POD: Shape = Struct(&[
    ("containers", List(&CONTAINER)),
    ("initContainers", List(&CONTAINER)),
    ("ephemeralContainers", List(&CONTAINER)),
    ("resources", Optional(RESOURCES)),
    ("overhead", QUANTITIES),
    ("nodeSelector", STRINGS),
    ("volumes", List(&VOLUME)),
    (
        "affinity",
        Optional(&[("podAffinity", POD_AFFINITY), ("podAntiAffinity", POD_AFFINITY), ("nodeAffinity", NODE_AFFINITY)]),
    ),
    ("topologySpreadConstraints", List(&Optional(&[("labelSelector", SELECTOR)]))),
]);

const CONTAINER: Shape = Optional(&[
    ("resources", Struct(RESOURCES)),
    ("env", List(&Optional(&[("valueFrom", Optional(&[("resourceFieldRef", RESOURCE_FIELD)]))]))),
]);

const VOLUME: Shape = Optional(&[
    ("emptyDir", Optional(&[("sizeLimit", Quantity)])),
    ("downwardAPI", DOWNWARD_API),
    (
        "projected",
        Optional(&[(
            "sources",
            List(&Optional(&[
                ("downwardAPI", DOWNWARD_API),
                ("clusterTrustBundle", Optional(&[("labelSelector", SELECTOR)])),
                ("podCertificate", Optional(&[("userAnnotations", STRINGS)])),
            ])),
        )]),
    ),
    ("ephemeral", Optional(&[("volumeClaimTemplate", Optional(&[("metadata", METADATA), ("spec", CLAIM)]))])),
    ("csi", Optional(&[("volumeAttributes", STRINGS)])),
    ("flexVolume", Optional(&[("options", STRINGS)])),
]);

const CLAIM: Shape = Struct(&[("resources", Struct(RESOURCES)), ("selector", SELECTOR)]);
const METADATA: Shape = Struct(&[("labels", STRINGS), ("annotations", STRINGS)]);
const RESOURCES: Fields = &[("limits", QUANTITIES), ("requests", QUANTITIES)];
const QUANTITIES: Shape = Map(&Quantity);
const STRINGS: Shape = Map(&Any);
const DOWNWARD_API: Shape = Optional(&[("items", List(&Optional(&[("resourceFieldRef", RESOURCE_FIELD)])))]);
const RESOURCE_FIELD: Shape = Optional(&[("divisor", Quantity)]);
const SELECTOR: Shape = Optional(&[("matchLabels", STRINGS)]);

const POD_AFFINITY: Shape = Optional(&[
    ("requiredDuringSchedulingIgnoredDuringExecution", List(&POD_AFFINITY_TERM)),
    ("preferredDuringSchedulingIgnoredDuringExecution", List(&Optional(&[("podAffinityTerm", POD_AFFINITY_TERM)]))),
]);
const POD_AFFINITY_TERM: Shape = Struct(&[("labelSelector", SELECTOR), ("namespaceSelector", SELECTOR)]);
const NODE_AFFINITY: Shape =
    Optional(&[("preferredDuringSchedulingIgnoredDuringExecution", List(&Optional(&[("preference", Struct(&[]))])))]);
