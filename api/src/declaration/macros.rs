//! The macros `view!` and `message!`, and the macros behind them.

/// Declares a [`View`](crate::View): a struct, its fields' places in the JSON and the protobuf of an object, and their
/// decoders.
///
/// ```
/// use kcm_api::{Resource, View, view};
///
/// view! {
///     /// A website.
///     pub struct Website {
///         resource: Resource::namespaced("example.com", "v1", "websites", "Website");
///         annotations: ["example.com/paused"];
///
///         "spec" {
///             /// `spec.image`.
///             pub image: String = "image";
///             let replicas: Option<i32> = "replicas";
///             /// `spec.replicas`, 1 where it is absent.
///             pub replicas: i32 = replicas.unwrap_or(1);
///         }
///         "status" {
///             /// `status.observedGeneration`.
///             pub observed_generation: i64 = "observedGeneration";
///         }
///     }
/// }
///
/// # fn main() -> Result<(), kcm_api::DecodeError> {
/// let website = Website::decode(r#"{"metadata":{"name":"shop"},"spec":{"image":"nginx"},"status":null}"#)?;
/// assert_eq!((website.meta().key.name(), &*website.image), ("shop", "nginx"));
/// assert_eq!((website.replicas, website.observed_generation), (1, 0));
/// # Ok(())
/// # }
/// ```
///
/// # Syntax
/// - `resource:` is the resource that is listed and watched. `annotations:` lists the annotations that are kept; it can
///   be left out.
/// - `parts: PodPart [PodVolumes, PodAddresses];` after those names the parts of the view, declared with
///   [`message!`](crate::message!), and the enum that holds them. A [`Part`](crate::Part) is decoded if a controller
///   needs it. Parts can be left out.
/// - `"spec" { … }` has the fields of an object within the object, to any depth. They are fields of the one struct.
/// - `pub image: String = "image";` is a field, decoded as its type; missing or `null` it is the type's default, and a
///   value of the wrong type is an error. Any type will do that implements `Deserialize` and `Default`, such as one
///   declared with [`message!`](crate::message!).
/// - `let replicas: Option<i32> = "replicas";` is decoded too, for the expressions of other fields, and not kept.
/// - `pub replicas: i32 = replicas.unwrap_or(1);` is a field that is computed from values of `let`.
/// - `"image" @ 2` and `"spec" @ 2 { … }` have field numbers in protobuf, taken from the kind's `generated.proto`. A
///   view with numbers is requested as protobuf, if the API server serves it; the types of its fields implement
///   [`ProtobufType`](crate::protobuf::ProtobufType), which says how they are encoded. `"conditions" @ 6 as KIND` says
///   it for this field. Custom resources have no protobuf.
/// - `"" @ 2 { … }` has fields that are a message of their own in protobuf, but not in JSON.
///
/// The struct has the field `metadata` besides, is `#[non_exhaustive]`, and derives `Debug`, `Clone` and `PartialEq`.
///
/// # Errors while compiling
/// A view of which only some fields have numbers:
/// ```compile_fail,E0080
/// kcm_api::view! {
///     struct Website {
///         resource: kcm_api::Resource::namespaced("example.com", "v1", "websites", "Website");
///         "spec" @ 2 { image: String = "image" @ 1; host: String = "host"; }
///     }
/// }
/// ```
/// Two fields with one number:
/// ```compile_fail,E0080
/// kcm_api::view! {
///     struct Website {
///         resource: kcm_api::Resource::namespaced("example.com", "v1", "websites", "Website");
///         "spec" @ 2 { image: String = "image" @ 1; host: String = "host" @ 1; }
///     }
/// }
/// ```
#[macro_export]
macro_rules! view {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        resource: $resource:expr;
        annotations: [$($annotation:expr),* $(,)?];
        $($body:tt)*
    }) => {
        $crate::__view! { ($(#[$meta])* $vis struct $name) ($resource) ($($annotation),*) $($body)* }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        resource: $resource:expr;
        $($body:tt)*
    }) => {
        $crate::__view! { ($(#[$meta])* $vis struct $name) ($resource) () $($body)* }
    };
}

/// The struct of a view, and the view.
#[doc(hidden)]
#[macro_export]
macro_rules! __view {
    ($head:tt $resource:tt $annotations:tt parts: $parts:ident [$($part:ident),+ $(,)?]; $($body:tt)*) => {
        $crate::__view! { $head $resource $annotations ($parts $($part)+) $($body)* }
    };
    // A section begins with a literal, a field with an attribute, a visibility or a name.
    ($head:tt $resource:tt ($($annotation:expr),*) ($($parts:ident $($part:ident)+)?) $($body:tt)*) => {
        $crate::__declare_view! { $head ($($parts)?) $($body)* }
        $crate::__impl_view! { $head $resource ($($annotation),*) ($($parts $($part)+)?) }
    };
    ($head:tt $resource:tt $annotations:tt $($body:tt)*) => {
        $crate::__view! { $head $resource $annotations () $($body)* }
    };
}

/// The struct of a view.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_view {
    ($head:tt () $($body:tt)*) => {
        $crate::__declare! {
            $head (view) () ()
            (
                /// Metadata of the object.
                pub metadata: $crate::Meta = "metadata" @ 1;
                $($body)*
            )
            /// Metadata of the object.
            pub metadata: $crate::Meta = "metadata" @ 1;
            $($body)*
        }
    };
    ($head:tt ($parts:ident) $($body:tt)*) => {
        $crate::__declare_view! { $head () $($body)* parts: ::std::boxed::Box<[$parts]> = ::std::boxed::Box::default(); }
    };
}

/// The implementations of a view and of its parts.
#[doc(hidden)]
#[macro_export]
macro_rules! __impl_view {
    (
        ($(#[$meta:meta])* $vis:vis struct $name:ident) ($resource:expr) ($($annotation:expr),*)
        ($($parts:ident $($part:ident)+)?)
    ) => {
        // Reports a contradiction even if the view is not used.
        const _: bool = $crate::declaration::has_numbers(<$name as $crate::declaration::Declared>::MESSAGE);

        $(
            /// The parts of an object that a controller needs.
            #[derive(Debug, Clone, PartialEq)]
            #[allow(clippy::enum_variant_names, reason = "parts are named after their view")]
            enum $parts { $($part($part),)+ }

            $(impl $crate::Part for $part {
                type View = $name;

                #[allow(irrefutable_let_patterns, reason = "a view may have a single part")]
                fn find(view: &$name) -> ::core::option::Option<&Self> {
                    view.parts.iter().find_map(|part| {
                        if let $parts::$part(part) = part { ::core::option::Option::Some(part) } else { None }
                    })
                }

                fn empty() -> &'static Self {
                    static EMPTY: ::std::sync::LazyLock<$part> = ::std::sync::LazyLock::new(Default::default);
                    &EMPTY
                }
            })+
        )?

        impl $name {
            fn decode_object(object: $crate::declaration::Object<'_>) -> ::core::result::Result<Self, $crate::DecodeError> {
                #[allow(unused_mut, reason = "a view may have no parts")]
                let mut view: Self = object.decode()?;
                $(
                    let mut parts = ::std::vec::Vec::new();
                    $(parts.extend(object.decode_part()?.map($parts::$part));)+
                    view.parts = parts.into_boxed_slice();
                )?
                ::core::result::Result::Ok(view)
            }
        }

        impl $crate::View for $name {
            const READS_PROTOBUF: bool =
                $crate::declaration::has_numbers(<Self as $crate::declaration::Declared>::MESSAGE);

            const ANNOTATIONS: &'static [&'static str] = &[$($annotation),*];

            fn decode(json: &str) -> ::core::result::Result<Self, $crate::DecodeError> {
                Self::decode_object($crate::declaration::Object::Json(json))
            }

            fn decode_protobuf(message: &[u8]) -> ::core::result::Result<Self, $crate::DecodeError> {
                Self::decode_object($crate::declaration::Object::Protobuf(message))
            }

            fn meta(&self) -> &$crate::Meta {
                &self.metadata
            }
        }

        impl $crate::KnownView for $name {
            const RESOURCE: $crate::Resource = $resource;
        }
    };
}

/// Declares a struct that is decoded from JSON and protobuf within a view: an element of a list, a status.
///
/// The syntax is the same as in [`view!`](crate::view!), without resource and annotations. `null` and the missing
/// object are the default: all fields have their default.
///
/// ```
/// kcm_api::message! {
///     /// A port of a service.
///     pub struct ServicePort {
///         /// `name`.
///         pub name: kcm_api::InternedStr = "name" @ 1;
///         /// `port`.
///         pub port: i32 = "port" @ 3;
///     }
/// }
/// let port: ServicePort = serde_json::from_str(r#"{"name":"http","port":80,"protocol":"TCP"}"#)?;
/// assert_eq!((port.name.as_str(), port.port), ("http", 80));
/// # Ok::<_, serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! message {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($body:tt)* }) => {
        $crate::__declare! { ($(#[$meta])* $vis struct $name) (message) () () ($($body)*) $($body)* }
    };
}

/// Collects the fields of a struct and of its sections, and the slots from which they are made; then
/// declares the struct.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare {
    // A section: its fields are fields of the struct.
    ($head:tt $is:tt $fields:tt $slots:tt $body:tt $json:literal $(@ $number:literal)? { $($inner:tt)* } $($rest:tt)*) => {
        $crate::__declare! { $head $is $fields $slots $body $($inner)* $($rest)* }
    };
    // A value that is not kept.
    (
        $head:tt $is:tt $fields:tt ($($slots:tt)*) $body:tt
        let $slot:ident: $type:ty = $json:literal $(@ $number:literal $(as $kind:expr)?)?;
        $($rest:tt)*
    ) => {
        $crate::__declare! { $head $is $fields ($($slots)* { $slot ($type) $json }) $body $($rest)* }
    };
    // A field that is a value.
    (
        $head:tt $is:tt ($($fields:tt)*) ($($slots:tt)*) $body:tt
        $(#[$meta:meta])* $vis:vis $field:ident: $type:ty = $json:literal $(@ $number:literal $(as $kind:expr)?)?;
        $($rest:tt)*
    ) => {
        $crate::__declare! {
            $head $is
            ($($fields)* { ($(#[$meta])* $vis $field: $type) $field ($field) })
            ($($slots)* { $field ($type) $json })
            $body $($rest)*
        }
    };
    // A field that is computed.
    (
        $head:tt $is:tt ($($fields:tt)*) $slots:tt $body:tt
        $(#[$meta:meta])* $vis:vis $field:ident: $type:ty = $value:expr;
        $($rest:tt)*
    ) => {
        $crate::__declare! {
            $head $is
            ($($fields)* { ($(#[$meta])* $vis $field: $type) $field ($value) })
            $slots $body $($rest)*
        }
    };
    (
        ($(#[$meta:meta])* $vis:vis struct $name:ident) ($is:ident)
        ($({ ($($declaration:tt)*) $field:ident ($value:expr) })*)
        ($({ $slot:ident ($type:ty) $json:literal })*)
        ($($body:tt)*)
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        $vis struct $name { $($($declaration)*,)* }

        const _: () = {
            #[derive(Default)]
            struct Values { $($slot: ::core::option::Option<$type>,)* }

            #[allow(non_camel_case_types, dead_code, reason = "named after the fields, of which there may be none")]
            enum Slot { $($slot,)* }

            impl $crate::declaration::Slots for Values {
                fn read<'de, D: $crate::declaration::serde::Deserializer<'de>>(
                    &mut self,
                    #[allow(unused_variables, reason = "there may be no fields")] slot: u16,
                    value: D,
                ) -> ::core::result::Result<(), D::Error> {
                    $(if slot == Slot::$slot as u16 {
                        return $crate::declaration::put(&mut self.$slot, $json, value);
                    })*
                    $crate::declaration::no_slot(value)
                }
            }

            impl $crate::declaration::Declared for $name {
                const MESSAGE: &'static $crate::protobuf::Message = $crate::__fields! { () $($body)* };
            }

            impl ::core::convert::From<Values> for $name {
                fn from(#[allow(unused_variables, reason = "there may be no fields")] values: Values) -> Self {
                    $(let $slot = values.$slot.unwrap_or_default();)*
                    Self { $($field: $value,)* }
                }
            }

            $crate::__decode! { $is $name Values }
        };
    };
}

/// The `Deserialize` of a declared type.
#[doc(hidden)]
#[macro_export]
macro_rules! __decode {
    (view $name:ident $values:ident) => {
        impl<'de> $crate::declaration::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::declaration::serde::Deserializer<'de>>(
                object: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let values: $values = $crate::declaration::walk_view(
                    <Self as $crate::declaration::Declared>::MESSAGE,
                    <Self as $crate::View>::ANNOTATIONS,
                    object,
                )?;
                if values.metadata.is_none() {
                    return $crate::declaration::no_metadata();
                }
                ::core::result::Result::Ok(Self::from(values))
            }
        }
    };
    (message $name:ident $values:ident) => {
        impl<'de> $crate::declaration::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::declaration::serde::Deserializer<'de>>(
                object: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let message = <Self as $crate::declaration::Declared>::MESSAGE;
                $crate::declaration::walk::<$values, D>(message, object).map(Self::from)
            }
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::from($values::default())
            }
        }

        const _: $crate::protobuf::Kind = <$name as $crate::protobuf::ProtobufType>::KIND;

        impl $crate::protobuf::ProtobufType for $name {
            const KIND: $crate::protobuf::Kind =
                $crate::declaration::kind_of(<Self as $crate::declaration::Declared>::MESSAGE);
        }
    };
}

/// The fields of a message and of its sections.
#[doc(hidden)]
#[macro_export]
macro_rules! __fields {
    (($($fields:tt)*)) => { &[$($fields)*] };
    (($($fields:tt)*) $json:literal $(@ $number:literal)? { $($inner:tt)* } $($rest:tt)*) => {
        $crate::__fields! {
            ($($fields)* $crate::protobuf::Field::section(0 $(+ $number)?, $json, $crate::__fields! { () $($inner)* }),)
            $($rest)*
        }
    };
    (($($fields:tt)*) let $slot:ident: $type:ty = $json:literal $(@ $number:literal $(as $kind:expr)?)?; $($rest:tt)*) => {
        $crate::__fields! {
            ($($fields)* $crate::__field! { $slot ($type) $json $($number $($kind)?)? },)
            $($rest)*
        }
    };
    (
        ($($fields:tt)*)
        $(#[$meta:meta])* $vis:vis $field:ident: $type:ty = $json:literal $(@ $number:literal $(as $kind:expr)?)?;
        $($rest:tt)*
    ) => {
        $crate::__fields! {
            ($($fields)* $crate::__field! { $field ($type) $json $($number $($kind)?)? },)
            $($rest)*
        }
    };
    (($($fields:tt)*) $(#[$meta:meta])* $vis:vis $field:ident: $type:ty = $value:expr; $($rest:tt)*) => {
        $crate::__fields! { ($($fields)*) $($rest)* }
    };
}

/// One field of a message.
#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    ($slot:ident ($type:ty) $json:literal) => {
        $crate::protobuf::Field::in_slot(0, $json, $crate::protobuf::Kind::Text, Slot::$slot as u16)
    };
    ($slot:ident ($type:ty) $json:literal $number:literal) => {
        $crate::protobuf::Field::in_slot(
            $number,
            $json,
            <$type as $crate::protobuf::ProtobufType>::KIND,
            Slot::$slot as u16,
        )
    };
    ($slot:ident ($type:ty) $json:literal $number:literal $kind:expr) => {
        $crate::protobuf::Field::in_slot($number, $json, $kind, Slot::$slot as u16)
    };
}
