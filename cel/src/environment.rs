//! The environment of an expression: functions, macros, variables and named types.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::notation::{DeclarationError, Overload, declarations};
use crate::parser::Macro;
use crate::types::Type;
use crate::validator::Validator;

/// The message and object types that the caller knows.
///
/// Types that every environment has, such as `int` and the messages of `google.protobuf`, need not be known here.
pub trait TypeProvider {
    /// Returns the type with a name, for example [`Type::Struct`] for an object.
    fn find_type(&self, name: &str) -> Option<Type>;

    /// Returns the type of a field, or `None` if the type does not have the field.
    fn find_field(&self, type_name: &str, field: &str) -> Option<Type>;
}

/// A provider without types.
impl TypeProvider for () {
    fn find_type(&self, _: &str) -> Option<Type> {
        None
    }

    fn find_field(&self, _: &str, _: &str) -> Option<Type> {
        None
    }
}

/// A message type with its fields.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) of: Type,
    pub(crate) fields: BTreeMap<String, Type>,
}

#[derive(Clone, Debug, Default)]
struct Declared {
    functions: HashMap<String, Vec<Overload>>,
    macros: Vec<Macro>,
    /// Names of types that expressions can write, such as `int`.
    types: HashMap<String, Type>,
    messages: HashMap<String, Message>,
    constants: HashMap<String, Type>,
    validators: Vec<Validator>,
}

/// A library of cel-go. Each has the version that the admission policies of Kubernetes 1.37 have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Library {
    /// Operators, conversions, functions of strings and times, and the macros `has`, `all`, `exists`, `exists_one`,
    /// `map` and `filter`. With comparisons between numbers of different types.
    Standard,
    /// Optional values and the macros `optMap` and `optFlatMap`.
    Optional,
    /// Functions of strings, version 2, with a validator of `format`.
    Strings,
    /// Functions of lists as sets.
    Sets,
    /// Functions of lists, version 3, with the macro `sortBy`.
    Lists,
    /// Macros with two variables.
    TwoVariables,
}

/// The functions, macros, variables and types that an expression can use.
///
/// A clone shares the libraries, so that variables can be added for each expression.
///
/// ```
/// use kcm_cel::{Environment, Library, Type};
///
/// let mut environment = Environment::standard().with(Library::Optional);
/// environment.declare("double: string.(int) -> string")?;
/// let environment = environment.with_variable("name", Type::String);
/// let checked = environment.compile("name.double(2) == 'aa'", &()).expect("the expression is valid");
/// assert_eq!(checked.result_type(), &Type::Bool);
/// # Ok::<(), kcm_cel::DeclarationError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    declared: Arc<Declared>,
    variables: BTreeMap<String, Type>,
}

impl Environment {
    /// Returns an environment with nothing in it, not even operators.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns an environment with the standard library.
    #[must_use]
    pub fn standard() -> Self {
        Self::empty().with(Library::Standard)
    }

    /// Adds the declarations of a library.
    #[must_use]
    pub fn with(mut self, library: Library) -> Self {
        use Macro as M;
        match library {
            Library::Standard => {
                self.built_in(include_str!("declarations/standard.txt"));
                self.with_macros(&[M::Has, M::All, M::Exists, M::ExistsOne, M::Map, M::MapFilter, M::Filter])
                    .with_standard_types()
            }
            Library::Optional => {
                self.built_in(include_str!("declarations/optional.txt"));
                self.with_macros(&[M::OptMap, M::OptFlatMap])
                    .with_named_type("optional_type", Type::optional(Type::Dyn))
            }
            Library::Strings => {
                self.built_in(include_str!("declarations/strings.txt"));
                self.with_validators(&[Validator::Format])
            }
            Library::Sets => {
                self.built_in(include_str!("declarations/sets.txt"));
                self
            }
            Library::Lists => {
                self.built_in(include_str!("declarations/lists.txt"));
                self.with_macros(&[M::SortBy])
            }
            Library::TwoVariables => {
                self.built_in(include_str!("declarations/two_variables.txt"));
                self.with_macros(&[
                    M::AllPairs,
                    M::ExistsPairs,
                    M::ExistsOnePairs,
                    M::ExistsOnePairsOld,
                    M::TransformList,
                    M::TransformListFilter,
                    M::TransformMap,
                    M::TransformMapFilter,
                    M::TransformMapEntry,
                    M::TransformMapEntryFilter,
                ])
            }
        }
    }

    /// Adds macros that the parser replaces.
    #[must_use]
    pub fn with_macros(mut self, macros: &[Macro]) -> Self {
        let known = &mut Arc::make_mut(&mut self.declared).macros;
        for each in macros {
            if !known.contains(each) {
                known.push(*each);
            }
        }
        self
    }

    /// Adds checks of literals, which run in the order in which they are added.
    #[must_use]
    pub fn with_validators(mut self, validators: &[Validator]) -> Self {
        let known = &mut Arc::make_mut(&mut self.declared).validators;
        for each in validators {
            if !known.contains(each) {
                known.push(*each);
            }
        }
        self
    }

    /// Adds a type that expressions can name.
    #[must_use]
    pub fn with_named_type(mut self, name: &str, of: Type) -> Self {
        Arc::make_mut(&mut self.declared).types.insert(name.to_owned(), of);
        self
    }

    /// Adds a variable, or replaces it. The name may contain dots.
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.to_owned(), of);
        self
    }

    /// Adds signatures of functions, one in each line: `name: (int, list(A)) -> A`, or
    /// `name: string.(int) -> bool` for a member. Lines that are empty or begin with `#` are skipped.
    ///
    /// Signatures of a function that is known are added after its others. The order decides the type of a call to
    /// which several signatures apply.
    ///
    /// # Errors
    ///
    /// Names the first line that cannot be read. Nothing is added then.
    pub fn declare(&mut self, text: &str) -> Result<(), DeclarationError> {
        let read = declarations(text)?;
        let functions = &mut Arc::make_mut(&mut self.declared).functions;
        for (name, overload) in read {
            let overloads = functions.entry(name.to_owned()).or_default();
            if !overloads.contains(&overload) {
                overloads.push(overload);
            }
        }
        Ok(())
    }

    pub(crate) fn built_in(&mut self, text: &str) {
        self.declare(text).expect("the declarations of a library must be well formed");
    }

    fn with_standard_types(mut self) -> Self {
        let declared = Arc::make_mut(&mut self.declared);
        let named = [
            ("bool", Type::Bool),
            ("bytes", Type::Bytes),
            ("double", Type::Double),
            ("google.protobuf.Duration", Type::Duration),
            ("google.protobuf.Empty", Type::object("google.protobuf.Empty")),
            ("google.protobuf.Timestamp", Type::Timestamp),
            ("int", Type::Int),
            ("list", Type::list(Type::Dyn)),
            ("map", Type::map(Type::Dyn, Type::Dyn)),
            ("null_type", Type::Null),
            ("string", Type::String),
            ("type", Type::Type(None)),
            ("uint", Type::Uint),
        ];
        declared.types.extend(named.map(|(name, of)| (name.to_owned(), of)));
        declared.constants.insert("google.protobuf.NullValue.NULL_VALUE".to_owned(), Type::Int);
        declared.messages.extend(messages(include_str!("declarations/messages.txt")));
        self
    }

    /// Returns the signatures of a function.
    #[must_use]
    pub fn overloads(&self, function: &str) -> Option<&[Overload]> {
        self.declared.functions.get(function).map(Vec::as_slice)
    }

    /// Returns the macros in their order.
    #[must_use]
    pub fn macros(&self) -> &[Macro] {
        &self.declared.macros
    }

    pub(crate) fn validators(&self) -> &[Validator] {
        &self.declared.validators
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    pub(crate) fn named_type(&self, name: &str) -> Option<&Type> {
        self.declared.types.get(name)
    }

    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.declared.messages.get(name)
    }

    pub(crate) fn constant(&self, name: &str) -> Option<&Type> {
        self.declared.constants.get(name)
    }
}

/// Reads messages: a line `message NAME: TYPE`, and for each field an indented line `NAME: TYPE`.
fn messages(text: &str) -> Vec<(String, Message)> {
    let mut found: Vec<(String, Message)> = Vec::new();
    for line in text.lines() {
        let Some((name, of)) = line.split_once(": ") else { continue };
        let of: Type = of.parse().expect("the types of messages must be well formed");
        match (name.strip_prefix("message "), found.last_mut()) {
            (Some(name), _) => found.push((name.to_owned(), Message { of, fields: BTreeMap::new() })),
            (None, Some((_, message))) => {
                message.fields.insert(name.trim().to_owned(), of);
            }
            (None, None) => {}
        }
    }
    found
}
