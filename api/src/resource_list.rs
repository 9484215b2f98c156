//! `ResourceList`: quantities by the name of their resource.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::decode::Text;
use crate::intern::InternedStr;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource_quantity::ResourceQuantity;
use crate::shared_values::Shareable;

/// Quantities by the name of their resource, sorted by name.
///
/// Invalid quantities, which the API server never serves, are left out.
///
/// # Upstream
/// `v1.ResourceList`, and the functions of `apiserver/pkg/quota/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceList(Vec<Pair>);

type Pair = (InternedStr, ResourceQuantity);

impl Shareable for ResourceList {
    fn is_same(&self, other: &Self) -> bool {
        let is_same = |((name, quantity), (other_name, other)): (&Pair, &Pair)| {
            name == other_name && quantity.prints_like(*other)
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_same)
    }

    fn digest<H: Hasher>(&self, state: &mut H) {
        for (name, quantity) in &self.0 {
            name.hash(state);
            quantity.digest(state);
        }
    }
}

impl ResourceList {
    /// The quantity of a resource.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<ResourceQuantity> {
        self.find(name).ok().map(|at| self.0[at].1)
    }

    /// Returns `true` if the list has the resource.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Sets the quantity of a resource.
    pub fn insert(&mut self, name: InternedStr, quantity: ResourceQuantity) {
        match self.find(&name) {
            Ok(at) => self.0[at].1 = quantity,
            Err(at) => self.0.insert(at, (name, quantity)),
        }
    }

    /// Adds each quantity of another list.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, |sum, quantity| *sum += quantity);
    }

    /// Raises each quantity to the quantity in `other` if that is greater.
    pub fn raise_to(&mut self, other: &Self) {
        self.merge(other, |most, quantity| {
            if quantity > *most {
                *most = quantity;
            }
        });
    }

    fn merge(&mut self, other: &Self, merge: impl Fn(&mut ResourceQuantity, ResourceQuantity)) {
        for (name, quantity) in &other.0 {
            match self.find(name) {
                Ok(at) => merge(&mut self.0[at].1, *quantity),
                Err(at) => self.0.insert(at, (name.clone(), *quantity)),
            }
        }
    }

    /// The resources and their quantities, sorted by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&InternedStr, ResourceQuantity)> {
        self.0.iter().map(|(name, quantity)| (name, *quantity))
    }

    /// The names of the resources, sorted.
    #[must_use]
    pub fn names(&self) -> impl ExactSizeIterator<Item = &InternedStr> {
        self.0.iter().map(|(name, _)| name)
    }

    /// Returns `true` if there are no resources.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives back memory that the list does not need.
    #[must_use]
    pub fn shrunk(mut self) -> Self {
        self.0.shrink_to_fit();
        self
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }
}

impl FromIterator<(InternedStr, ResourceQuantity)> for ResourceList {
    /// The last of several quantities of one resource counts.
    fn from_iter<I: IntoIterator<Item = (InternedStr, ResourceQuantity)>>(quantities: I) -> Self {
        let mut list = Self::default();
        for (name, quantity) in quantities {
            list.insert(name, quantity);
        }
        list
    }
}

impl Serialize for ResourceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Quantities;
        impl<'de> Visitor<'de> for Quantities {
            type Value = ResourceList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of quantities")
            }

            fn visit_unit<E>(self) -> Result<ResourceList, E> {
                Ok(ResourceList::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
                let mut list = ResourceList::default();
                while let Some(name) = map.next_key::<Text<'de>>()? {
                    let quantity: Option<Text<'de>> = map.next_value()?;
                    let quantity = quantity.map_or(Cow::Borrowed("0"), |text| text.0);
                    if let Ok(quantity) = quantity.parse() {
                        list.insert(InternedStr::from(&*name.0), quantity);
                    }
                }
                Ok(list.shrunk())
            }
        }
        deserializer.deserialize_any(Quantities)
    }
}

impl ProtobufType for ResourceList {
    const KIND: Kind = Kind::Map(&Kind::Quantity);
}
