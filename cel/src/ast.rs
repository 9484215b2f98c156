//! The syntax tree: nodes in one vector, so that a tree is dropped without recursion.

/// Index of a node in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// Line and column of a code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Number of the line, from 1.
    pub line: u32,
    /// Number of code points before the position in its line.
    pub column: u32,
}

/// The value of a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// The literal with the name `null`.
    Null,
    /// The literals `true` and `false`.
    Bool(bool),
    /// A signed integer of 64 bits.
    Int(i64),
    /// An unsigned integer of 64 bits.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// A string without quotes and escapes.
    String(String),
    /// A byte string without quotes and escapes.
    Bytes(Vec<u8>),
}

/// An element of a list literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// `true` if the element is written with a leading `?`.
    pub optional: bool,
    /// The value of this part.
    pub value: ExprId,
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// `true` if the key is written with a leading `?`.
    pub optional: bool,
    /// Position of the colon.
    pub position: Position,
    /// The key of the entry.
    pub key: ExprId,
    /// The value of this part.
    pub value: ExprId,
}

/// A field of a message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// `true` if the name is written with a leading `?`.
    pub optional: bool,
    /// Position of the colon.
    pub position: Position,
    /// Name of the field.
    pub name: String,
    /// The value of this part.
    pub value: ExprId,
}

/// Kind of a node, with its children.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal of any type.
    Literal(Literal),
    /// A name, with its leading dot if it has one.
    Ident(String),
    /// A field of an operand: `operand.field`.
    Select {
        /// The operand of the selection.
        operand: ExprId,
        /// Name of the field.
        field: String,
    },
    /// A call. Operators are calls of functions such as `_+_`.
    Call {
        /// The receiver of a member call.
        target: Option<ExprId>,
        /// Name of the function.
        function: String,
        /// The arguments of the call.
        args: Vec<ExprId>,
    },
    /// A list with its elements.
    List(Vec<Element>),
    /// A map with its entries.
    Map(Vec<Entry>),
    /// A message with its fields.
    Struct {
        /// Name of the message type.
        name: String,
        /// The fields of the message.
        fields: Vec<Field>,
    },
    /// A test for the presence of a field, which the macro `has` makes.
    Has {
        /// The operand of the selection.
        operand: ExprId,
        /// Name of the field.
        field: String,
    },
    /// A loop, which macros such as `all` make.
    Fold(Box<Fold>),
}

/// A loop over a list or a map that computes one value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// The list or map.
    pub range: ExprId,
    /// Name of the variable of a loop: the element of a list or the key of a map. With a second variable, the index
    /// of a list.
    pub variable: String,
    /// Name of the second variable: the element of a list or the value of a map.
    pub second: Option<String>,
    /// Name of the variable that carries the result from one step to the next.
    pub accumulator: String,
    /// First value of the accumulator.
    pub initial: ExprId,
    /// Condition for another step.
    pub condition: ExprId,
    /// Value of the accumulator after a step.
    pub step: ExprId,
    /// Value of the whole loop.
    pub result: ExprId,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Position that messages about the node name.
    pub position: Position,
    /// Kind and children of the node.
    pub kind: ExprKind,
}

/// The syntax tree of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Ast {
    pub(crate) nodes: Vec<Expr>,
    pub(crate) root: ExprId,
}

impl Ast {
    /// Returns the root of the tree.
    #[must_use]
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Returns a node.
    ///
    /// # Panics
    ///
    /// Panics if the index belongs to a larger tree.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn fold_children(fold: &Fold) -> [ExprId; 5] {
        [fold.range, fold.initial, fold.condition, fold.step, fold.result]
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.nodes.len()
    }
}
