//! A conflict of two Pods that use one volume, and its event.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event, EventText};

/// A property in which two Pods conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Property {
    ChangePolicy,
    Label,
}

impl Property {
    /// Name of the property in events and metrics.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ChangePolicy => "SELinuxChangePolicy",
            Self::Label => "SELinuxLabel",
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::ChangePolicy => "SELinuxChangePolicyConflict",
            Self::Label => "SELinuxLabelConflict",
        }
    }
}

/// A conflict as one of its Pods sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Conflict {
    pub(super) property: Property,
    /// The Pod that has the event.
    pub(super) pod: ObjectKey,
    pub(super) value: Box<str>,
    pub(super) other: ObjectKey,
    pub(super) other_value: Box<str>,
}

impl Conflict {
    /// Returns the conflict as the other Pod sees it.
    pub(super) fn reversed(&self) -> Self {
        Self {
            property: self.property,
            pod: self.other.clone(),
            value: self.other_value.clone(),
            other: self.pod.clone(),
            other_value: self.value.clone(),
        }
    }

    pub(super) fn concerns(&self, pod: &ObjectKey) -> bool {
        self.pod == *pod || self.other == *pod
    }
}

impl Event for Conflict {
    /// # Upstream
    /// Both texts, with the blank that is missing in the second.
    fn text(&self) -> EventText<'_> {
        const END: &str = "If both pods land on the same node, only one of them may access the volume.";
        let (property, value, other_value) = (self.property.name(), &self.value, &self.other_value);
        let message = if self.pod.namespace() == self.other.namespace() {
            let other = self.other.name();
            format!(
                "{property} \"{value}\" conflicts with pod {other} that uses the same volume as this pod with \
                 {property} \"{other_value}\". {END}"
            )
        } else {
            // A user must not see the names of another namespace.
            format!(
                "{property}\"{value}\" conflicts with another pod that uses the same volume as this pod with a \
                 different {property}. {END}"
            )
        };
        EventText::normal(self.property.reason(), message)
    }
}

/// The containers of a Pod mount a volume with different labels.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeveralLabels<'a> {
    pub(super) volume: &'a str,
}

impl Event for SeveralLabels<'_> {
    fn text(&self) -> EventText<'_> {
        let message =
            format!("Volume {:?} is mounted twice with different SELinux labels inside this pod", self.volume);
        EventText::warning("MultipleSELinuxLabels", message)
    }
}
