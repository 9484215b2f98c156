//! The needs of controllers beyond the fields of a view: parts and annotations.
//!
//! A pod is kept in half a kilobyte because few of its fields are kept. Another controller's fields are a [`Part`]: it
//! is decoded only if an enabled controller has declared the [`Need`], and costs nothing otherwise.
//!
//! ```
//! use kcm_api::views::{Pod, PodVolumes};
//! use kcm_api::{DecodeContext, Interner, Need, Needs, View};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let json = r#"{"metadata":{},"spec":{"volumes":[{"persistentVolumeClaim":{"claimName":"data"}}]}}"#;
//! let needs: Needs = [Need::part::<PodVolumes>()].into_iter().collect();
//! let context = Arc::new(DecodeContext::new::<Pod>(Arc::default(), &needs));
//! let pod = context.scope(|| Pod::decode(json))?;
//!
//! let volumes = needs.reader::<PodVolumes>()?;
//! assert_eq!(volumes.of(&pod).volumes[0].claim_name.as_deref(), Some("data"));
//! # Ok(())
//! # }
//! ```

use std::any::TypeId;
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::annotations::keeping_needed;
use crate::intern::Interner;
use crate::view::View;

/// A part of a view: fields that are decoded only if a controller needs them.
///
/// Declared with [`message!`](crate::message!), and named in `parts:` of the [`view!`](crate::view!).
pub trait Part: PartialEq + Send + Sync + Sized + 'static {
    /// The view that it is a part of.
    type View: View;

    /// Returns the part of `view`, or `None` if it is empty or was not decoded.
    #[doc(hidden)]
    fn find(view: &Self::View) -> Option<&Self>;

    /// Returns the part of an object without any of its fields.
    fn empty() -> &'static Self;
}

/// One thing that a controller needs of a view beyond its fields.
#[derive(Clone, Copy)]
pub struct Need {
    view: TypeId,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Part { part: TypeId, name: fn() -> &'static str },
    Annotation(&'static str),
}

impl Need {
    /// A part of a view.
    #[must_use]
    pub const fn part<P: Part>() -> Self {
        let what = What::Part { part: TypeId::of::<P>(), name: std::any::type_name::<P> };
        Self { view: <P::View as View>::DECLARED, what }
    }

    /// An annotation that a view does not keep by itself.
    #[must_use]
    pub const fn annotation<V: View>(key: &'static str) -> Self {
        Self { view: V::DECLARED, what: What::Annotation(key) }
    }
}

impl Need {
    fn is(&self, other: &Self) -> bool {
        let is_what = match (self.what, other.what) {
            (What::Part { part, .. }, What::Part { part: other, .. }) => part == other,
            (What::Annotation(key), What::Annotation(other)) => key == other,
            (What::Part { .. }, What::Annotation(_)) | (What::Annotation(_), What::Part { .. }) => false,
        };
        self.view == other.view && is_what
    }
}

impl fmt::Debug for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Part { name, .. } => f.write_str(last_segment(name())),
            What::Annotation(key) => fmt::Debug::fmt(key, f),
        }
    }
}

/// The needs of a controller, or of all controllers whose informers are shared.
#[derive(Debug, Clone, Default)]
pub struct Needs(Arc<[Need]>);

impl FromIterator<Need> for Needs {
    fn from_iter<I: IntoIterator<Item = Need>>(needs: I) -> Self {
        Self(needs.into_iter().collect())
    }
}

impl Needs {
    /// Reads a part of the views that are decoded for these needs.
    ///
    /// # Errors
    /// If the part is not one of these needs. It is not decoded then, so that every object would seem to have none.
    pub fn reader<P: Part>(&self) -> Result<PartReader<P>, UndeclaredPart> {
        if self.parts_of::<P::View>().any(|part| part == TypeId::of::<P>()) {
            return Ok(PartReader(PhantomData));
        }
        let view = last_segment(std::any::type_name::<P::View>());
        Err(UndeclaredPart { part: last_segment(std::any::type_name::<P>()), view })
    }

    /// Returns `true` if these needs include all of `others`.
    #[must_use]
    pub fn include(&self, others: &[Need]) -> bool {
        others.iter().all(|other| self.0.iter().any(|need| need.is(other)))
    }

    fn parts_of<V: View>(&self) -> impl Iterator<Item = TypeId> {
        self.of::<V>().filter_map(|what| match what {
            What::Part { part, .. } => Some(part),
            What::Annotation(_) => None,
        })
    }

    fn annotations_of<V: View>(&self) -> impl Iterator<Item = &'static str> {
        self.of::<V>().filter_map(|what| match what {
            What::Annotation(key) => Some(key),
            What::Part { .. } => None,
        })
    }

    fn of<V: View>(&self) -> impl Iterator<Item = What> {
        self.0.iter().filter(|need| need.view == V::DECLARED).map(|need| need.what)
    }
}

/// Reads a part of a view. The part is certain to be decoded.
///
/// It takes no memory. A controller keeps it together with its informer.
pub struct PartReader<P>(PhantomData<fn() -> P>);

impl<P: Part> PartReader<P> {
    /// Returns the part of an object from an informer, or of an object that was decoded without a [`DecodeContext`].
    #[must_use]
    pub fn of(self, view: &P::View) -> &P {
        P::find(view).unwrap_or_else(|| P::empty())
    }
}

impl<P> Clone for PartReader<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for PartReader<P> {}

impl<P> fmt::Debug for PartReader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartReader<{}>", last_segment(std::any::type_name::<P>()))
    }
}

/// The error of a controller that reads a part without having declared it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} of {view} is not decoded: add `Need::part::<{part}>()` to the needs of the controller's descriptor")]
pub struct UndeclaredPart {
    part: &'static str,
    view: &'static str,
}

/// The name of a type without the modules around it.
fn last_segment(name: &'static str) -> &'static str {
    name.rsplit("::").next().unwrap_or(name)
}

thread_local! {
    // `Deserialize` has no context parameter; the context is kept in the decoding thread instead.
    static CONTEXT: RefCell<Option<Arc<DecodeContext>>> = const { RefCell::new(None) };
}

/// Options for decoding the objects of an informer: parts, annotations, and the interner of strings.
///
/// An object that is decoded outside of any context has all parts.
pub struct DecodeContext {
    interner: Arc<Interner>,
    view: TypeId,
    parts: Box<[TypeId]>,
    annotations: Arc<[&'static str]>,
}

impl DecodeContext {
    /// Makes the context of one view.
    #[must_use]
    pub fn new<V: View>(interner: Arc<Interner>, needs: &Needs) -> Self {
        let (parts, annotations) = (needs.parts_of::<V>().collect(), needs.annotations_of::<V>().collect());
        Self { interner, view: V::DECLARED, parts, annotations }
    }

    /// Runs `decode` in this context, on this thread.
    pub fn scope<R>(self: &Arc<Self>, decode: impl FnOnce() -> R) -> R {
        struct Restore(Option<Arc<DecodeContext>>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CONTEXT.with_borrow_mut(|context| *context = self.0.take());
            }
        }
        let _restore = Restore(CONTEXT.with_borrow_mut(|context| context.replace(Arc::clone(self))));
        keeping_needed(&self.annotations, || self.interner.scope(decode))
    }
}

impl fmt::Debug for DecodeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.len();
        f.debug_struct("DecodeContext")
            .field("parts", &parts)
            .field("annotations", &self.annotations)
            .finish_non_exhaustive()
    }
}

/// Returns `true` if this part is decoded in the current context.
pub(crate) fn is_decoded<P: Part>() -> bool {
    CONTEXT.with_borrow(|context| {
        context.as_ref().is_none_or(|context| {
            context.view != <P::View as View>::DECLARED || context.parts.contains(&TypeId::of::<P>())
        })
    })
}
