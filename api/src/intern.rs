//! Interned strings: one copy of a string that many objects repeat, such as namespaces, label keys and values, and node
//! names.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::shared_values::{Shareable, SharedValues};

thread_local! {
    // `Deserialize` has no context parameter; the scope is kept in the decoding thread instead.
    static SCOPE: RefCell<Option<Arc<Interner>>> = const { RefCell::new(None) };
}

/// Runs `act` with the interner of the current [`Interner::scope`], if there is one.
pub(crate) fn with_interner<R>(act: impl FnOnce(Option<&Interner>) -> R) -> R {
    SCOPE.with_borrow(|scope| act(scope.as_deref()))
}

/// An interned string: equal strings that are decoded within one [`Interner`] share one allocation.
///
/// It takes two words. Equality, order and hash compare the strings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InternedStr(Arc<str>);

impl InternedStr {
    /// Returns the string itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for InternedStr {
    fn default() -> Self {
        Self::from("")
    }
}

impl From<&str> for InternedStr {
    /// Shares the copy of the current [`Interner::scope`], or allocates outside of one.
    fn from(text: &str) -> Self {
        with_interner(|interner| match interner {
            Some(interner) => interner.intern(text),
            None => Self(Arc::from(text)),
        })
    }
}

impl From<String> for InternedStr {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl Deref for InternedStr {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for InternedStr {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for InternedStr {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for InternedStr {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for InternedStr {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Debug for InternedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for InternedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for InternedStr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for InternedStr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Str;
        impl Visitor<'_> for Str {
            type Value = InternedStr;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<InternedStr, E> {
                Ok(InternedStr::from(text))
            }
        }
        deserializer.deserialize_str(Str)
    }
}

/// An interner: one allocation per distinct string, and per distinct [`Shared`](crate::Shared) value, that is decoded
/// within its [scope](Self::scope).
///
/// Unused strings are dropped when the set has doubled since the last sweep, so the interner never holds more than
/// twice the strings in use.
#[derive(Default)]
pub struct Interner {
    strings: Mutex<Strings>,
    values: Mutex<SharedValues>,
}

#[derive(Default)]
struct Strings {
    set: HashSet<InternedStr>,
    sweep_at: usize,
}

impl Interner {
    const SMALLEST_SWEEP: usize = 1024;

    /// Runs `decode` with every [`InternedStr`] made on this thread taken from this interner.
    pub fn scope<R>(self: &Arc<Self>, decode: impl FnOnce() -> R) -> R {
        struct Restore(Option<Arc<Interner>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPE.with_borrow_mut(|scope| *scope = self.0.take());
            }
        }
        let _restore = Restore(SCOPE.with_borrow_mut(|scope| scope.replace(Arc::clone(self))));
        decode()
    }

    /// The interned copy of `text`.
    #[must_use]
    pub fn intern(&self, text: &str) -> InternedStr {
        let mut strings = self.strings.lock();
        if let Some(known) = strings.set.get(text) {
            return known.clone();
        }
        if strings.set.len() >= strings.sweep_at.max(Self::SMALLEST_SWEEP) {
            strings.set.retain(|text| Arc::strong_count(&text.0) > 1);
            strings.set.shrink_to_fit();
            strings.sweep_at = strings.set.len() * 2;
        }
        let made = InternedStr(Arc::from(text));
        strings.set.insert(made.clone());
        made
    }

    /// Returns the shared copy of `value`.
    pub(crate) fn share<T: Shareable + ?Sized>(&self, value: Arc<T>) -> Arc<T> {
        self.values.lock().share(value)
    }

    /// Returns the number of distinct strings, including unused ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strings.lock().set.len()
    }

    /// Returns `true` if nothing has been interned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::AssertUnwindSafe;

    /// Whether both are one allocation, which says more than that they are equal.
    fn share(one: &InternedStr, other: &InternedStr) -> bool {
        Arc::ptr_eq(&one.0, &other.0)
    }

    #[test]
    fn within_a_scope_equal_strings_share_one_allocation() {
        let interner = Arc::new(Interner::default());
        let (a, b) =
            interner.scope(|| (InternedStr::from("web"), serde_json::from_str::<InternedStr>("\"web\"").unwrap()));
        assert!(share(&a, &b));
        assert!(share(&a, &interner.intern("web")));
        assert!(!share(&a, &InternedStr::from("web")));
        assert_eq!(interner.len(), 1);
    }

    #[test]
    fn a_scope_ends_with_its_closure_and_gives_way_to_an_inner_one() {
        let (outer, inner) = (Arc::new(Interner::default()), Arc::new(Interner::default()));
        outer.scope(|| {
            inner.scope(|| InternedStr::from("inner"));
            InternedStr::from("outer")
        });
        drop(InternedStr::from("none"));
        assert_eq!((outer.len(), inner.len()), (1, 1));
    }

    #[test]
    fn a_panic_ends_the_scope() {
        let interner = Arc::new(Interner::default());
        let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| interner.scope(|| panic!("as a test"))));
        assert!(panicked.is_err());
        drop(InternedStr::from("after"));
        assert!(interner.is_empty());
    }

    #[test]
    fn unused_strings_are_swept() {
        let interner = Interner::default();
        let kept: Vec<_> = (0..10).map(|number| interner.intern(&format!("kept-{number}"))).collect();
        for number in 0..10 * Interner::SMALLEST_SWEEP {
            assert_eq!(interner.intern(&number.to_string()), *number.to_string());
            assert!(interner.len() <= Interner::SMALLEST_SWEEP);
        }
        assert!(kept.iter().all(|text| share(&interner.intern(text), text)));
    }
}
