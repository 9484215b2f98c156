//! Macros: calls that the parser replaces.

use super::{Parsed, Parser};
use crate::ast::{Ast, Element, Entry, ExprId, ExprKind, Field, Fold, Literal, Position};

/// A macro: a call with a name, a style and a number of arguments that the parser replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Macro {
    /// `has(e.f)` tests whether a field is present.
    Has,
    /// `e.all(x, p)` tests all elements or keys.
    All,
    /// `e.exists(x, p)` looks for one element or key.
    Exists,
    /// `e.exists_one(x, p)` looks for exactly one element or key.
    ExistsOne,
    /// `e.map(x, t)` makes a list of other values.
    Map,
    /// `e.map(x, p, t)` makes a list of other values for some elements.
    MapFilter,
    /// `e.filter(x, p)` makes a list of some elements.
    Filter,
    /// `o.optMap(x, t)` makes an optional of another value.
    OptMap,
    /// `o.optFlatMap(x, t)` makes another optional.
    OptFlatMap,
    /// `e.all(i, v, p)` tests all pairs.
    AllPairs,
    /// `e.exists(i, v, p)` looks for one pair.
    ExistsPairs,
    /// `e.existsOne(i, v, p)` looks for exactly one pair.
    ExistsOnePairs,
    /// `e.exists_one(i, v, p)` is the old name of [`Self::ExistsOnePairs`].
    ExistsOnePairsOld,
    /// `e.transformList(i, v, t)` makes a list from pairs.
    TransformList,
    /// `e.transformList(i, v, p, t)` makes a list from some pairs.
    TransformListFilter,
    /// `e.transformMap(k, v, t)` makes a map with other values.
    TransformMap,
    /// `e.transformMap(k, v, p, t)` makes a map with other values from some pairs.
    TransformMapFilter,
    /// `e.transformMapEntry(k, v, t)` makes a map with other entries.
    TransformMapEntry,
    /// `e.transformMapEntry(k, v, p, t)` makes a map with other entries from some pairs.
    TransformMapEntryFilter,
    /// `l.sortBy(x, t)` sorts a list by other values.
    SortBy,
}

impl Macro {
    /// Returns the name of the call, whether it has a receiver, and the number of arguments.
    #[must_use]
    pub fn signature(self) -> (&'static str, bool, usize) {
        match self {
            Self::Has => ("has", false, 1),
            Self::All => ("all", true, 2),
            Self::Exists => ("exists", true, 2),
            Self::ExistsOne => ("exists_one", true, 2),
            Self::Map => ("map", true, 2),
            Self::MapFilter => ("map", true, 3),
            Self::Filter => ("filter", true, 2),
            Self::OptMap => ("optMap", true, 2),
            Self::OptFlatMap => ("optFlatMap", true, 2),
            Self::AllPairs => ("all", true, 3),
            Self::ExistsPairs => ("exists", true, 3),
            Self::ExistsOnePairs => ("existsOne", true, 3),
            Self::ExistsOnePairsOld => ("exists_one", true, 3),
            Self::TransformList => ("transformList", true, 3),
            Self::TransformListFilter => ("transformList", true, 4),
            Self::TransformMap => ("transformMap", true, 3),
            Self::TransformMapFilter => ("transformMap", true, 4),
            Self::TransformMapEntry => ("transformMapEntry", true, 3),
            Self::TransformMapEntryFilter => ("transformMapEntry", true, 4),
            Self::SortBy => ("sortBy", true, 2),
        }
    }
}

const ACCUMULATOR: &str = "@result";
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED: &str = "#unused";
const SORTED: &str = "@__sortBy_input__";

pub(crate) fn find(macros: &[Macro], function: &str, receiver: bool, args: usize) -> Option<Macro> {
    macros.iter().copied().find(|each| each.signature() == (function, receiver, args))
}

/// Arguments that a macro does not take.
pub(crate) struct Refused {
    pub(crate) at: ExprId,
    pub(crate) message: String,
}

type Expanded = Parsed<Result<ExprId, Refused>>;

/// Unwraps what may be refused, and returns the refusal to the parser.
macro_rules! accept {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}

/// Replaces a call. The outer result is an end of the parse, the inner one a problem with the arguments.
pub(crate) fn expand(
    parser: &mut Parser<'_>,
    wanted: Macro,
    open: Position,
    target: Option<ExprId>,
    args: &[ExprId],
) -> Expanded {
    let mut builder = Builder { parser, open };
    let Some(target) = target else { return has(&mut builder, args[0]) };
    match wanted {
        Macro::Has => has(&mut builder, args[0]),
        Macro::All => builder.quantifier_of_one(Quantifier::All, target, args),
        Macro::Exists => builder.quantifier_of_one(Quantifier::Exists, target, args),
        Macro::ExistsOne => builder.quantifier_of_one(Quantifier::One, target, args),
        Macro::Map => builder.collected_of_one(target, args[0], None, args[1]),
        Macro::MapFilter => builder.collected_of_one(target, args[0], Some(args[1]), args[2]),
        Macro::Filter => builder.collected_of_one(target, args[0], Some(args[1]), args[0]),
        Macro::OptMap | Macro::OptFlatMap => builder.optional(wanted, target, args),
        Macro::AllPairs => builder.quantifier_of_two(Quantifier::All, target, args),
        Macro::ExistsPairs => builder.quantifier_of_two(Quantifier::Exists, target, args),
        Macro::ExistsOnePairs | Macro::ExistsOnePairsOld => builder.quantifier_of_two(Quantifier::One, target, args),
        Macro::TransformList | Macro::TransformListFilter => {
            let variables = accept!(builder.variables(args));
            let (filter, element) = filtered(args);
            builder.collected(target, variables, filter, element)
        }
        Macro::TransformMap | Macro::TransformMapFilter | Macro::TransformMapEntry | Macro::TransformMapEntryFilter => {
            let variables = accept!(builder.variables(args));
            let (filter, value) = filtered(args);
            let keyed = matches!(wanted, Macro::TransformMap | Macro::TransformMapFilter);
            builder.inserted(target, variables, filter, value, keyed)
        }
        Macro::SortBy => builder.sorted(target, args),
    }
}

fn filtered(args: &[ExprId]) -> (Option<ExprId>, ExprId) {
    if let [_, _, filter, value] = args { (Some(*filter), *value) } else { (None, args[2]) }
}

fn has(builder: &mut Builder<'_, '_>, arg: ExprId) -> Expanded {
    let (ExprKind::Select { operand, field } | ExprKind::Has { operand, field }) = builder.kind(arg) else {
        return Ok(Err(Refused { at: arg, message: "invalid argument to has() macro".to_owned() }));
    };
    let kind = ExprKind::Has { operand: *operand, field: field.clone() };
    builder.node(kind).map(Ok)
}

#[derive(Clone, Copy)]
enum Quantifier {
    All,
    Exists,
    One,
}

type Variables = (String, Option<String>);

/// Makes nodes at the parenthesis of the macro's call.
struct Builder<'p, 'a> {
    parser: &'p mut Parser<'a>,
    open: Position,
}

impl Builder<'_, '_> {
    fn kind(&self, id: ExprId) -> &ExprKind {
        &self.parser.nodes[id.0 as usize].kind
    }

    fn node(&mut self, kind: ExprKind) -> Parsed<ExprId> {
        self.parser.push(self.open, kind)
    }

    fn call(&mut self, function: &str, args: Vec<ExprId>) -> Parsed<ExprId> {
        self.parser.call(self.open, function, args)
    }

    fn member(&mut self, function: &str, target: ExprId, args: Vec<ExprId>) -> Parsed<ExprId> {
        self.node(ExprKind::Call { target: Some(target), function: function.to_owned(), args })
    }

    fn literal(&mut self, value: Literal) -> Parsed<ExprId> {
        self.node(ExprKind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Parsed<ExprId> {
        self.node(ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Parsed<ExprId> {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, values: &[ExprId]) -> Parsed<ExprId> {
        self.node(ExprKind::List(values.iter().map(|value| Element { optional: false, value: *value }).collect()))
    }

    fn name(&self, arg: ExprId) -> Option<String> {
        if let ExprKind::Ident(name) = self.kind(arg) { Some(name.clone()) } else { None }
    }

    fn variable(&self, arg: ExprId, otherwise: &str) -> Result<String, Refused> {
        let name = self.name(arg).ok_or_else(|| Refused { at: arg, message: otherwise.to_owned() })?;
        overwrites(&name, arg)?;
        Ok(name)
    }

    fn variables(&self, args: &[ExprId]) -> Result<Variables, Refused> {
        let simple = |arg| {
            self.name(arg).ok_or_else(|| Refused { at: arg, message: "argument must be a simple name".to_owned() })
        };
        let (first, second) = (simple(args[0])?, simple(args[1])?);
        if first == second {
            return Err(Refused { at: args[1], message: format!("duplicate variable name: {first}") });
        }
        overwrites(&first, args[0])?;
        overwrites(&second, args[1])?;
        Ok((first, Some(second)))
    }

    fn fold(&mut self, range: ExprId, variables: Variables, parts: [ExprId; 4]) -> Parsed<ExprId> {
        let [initial, condition, step, result] = parts;
        let (variable, second) = variables;
        let accumulator = ACCUMULATOR.to_owned();
        let fold = Fold { range, variable, second, accumulator, initial, condition, step, result };
        self.node(ExprKind::Fold(Box::new(fold)))
    }

    fn quantifier_of_one(&mut self, of: Quantifier, range: ExprId, args: &[ExprId]) -> Expanded {
        let variable = accept!(self.variable(args[0], "argument must be a simple name"));
        self.quantifier(of, range, (variable, None), args[1])
    }

    fn quantifier_of_two(&mut self, of: Quantifier, range: ExprId, args: &[ExprId]) -> Expanded {
        let variables = accept!(self.variables(args));
        self.quantifier(of, range, variables, args[2])
    }

    fn collected_of_one(
        &mut self,
        range: ExprId,
        variable: ExprId,
        filter: Option<ExprId>,
        element: ExprId,
    ) -> Expanded {
        let variable = accept!(self.variable(variable, "argument is not an identifier"));
        self.collected(range, (variable, None), filter, element)
    }

    fn quantifier(&mut self, of: Quantifier, range: ExprId, variables: Variables, predicate: ExprId) -> Expanded {
        let parts = match of {
            Quantifier::All => {
                let initial = self.literal(Literal::Bool(true))?;
                let before = self.accumulator()?;
                let condition = self.call("@not_strictly_false", vec![before])?;
                let before = self.accumulator()?;
                let step = self.call("_&&_", vec![before, predicate])?;
                [initial, condition, step, self.accumulator()?]
            }
            Quantifier::Exists => {
                let initial = self.literal(Literal::Bool(false))?;
                let before = self.accumulator()?;
                let not = self.call("!_", vec![before])?;
                let condition = self.call("@not_strictly_false", vec![not])?;
                let before = self.accumulator()?;
                let step = self.call("_||_", vec![before, predicate])?;
                [initial, condition, step, self.accumulator()?]
            }
            Quantifier::One => {
                let initial = self.literal(Literal::Int(0))?;
                let condition = self.literal(Literal::Bool(true))?;
                let (before, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
                let sum = self.call("_+_", vec![before, one])?;
                let before = self.accumulator()?;
                let step = self.call("_?_:_", vec![predicate, sum, before])?;
                let (count, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
                [initial, condition, step, self.call("_==_", vec![count, one])?]
            }
        };
        self.fold(range, variables, parts).map(Ok)
    }

    fn step(&mut self, filter: Option<ExprId>, step: ExprId) -> Parsed<ExprId> {
        let Some(filter) = filter else { return Ok(step) };
        let before = self.accumulator()?;
        self.call("_?_:_", vec![filter, step, before])
    }

    fn collected(&mut self, range: ExprId, variables: Variables, filter: Option<ExprId>, element: ExprId) -> Expanded {
        let initial = self.list(&[])?;
        let condition = self.literal(Literal::Bool(true))?;
        let (before, more) = (self.accumulator()?, self.list(&[element])?);
        let sum = self.call("_+_", vec![before, more])?;
        let step = self.step(filter, sum)?;
        let result = self.accumulator()?;
        self.fold(range, variables, [initial, condition, step, result]).map(Ok)
    }

    fn inserted(
        &mut self,
        range: ExprId,
        variables: Variables,
        filter: Option<ExprId>,
        value: ExprId,
        keyed: bool,
    ) -> Expanded {
        let initial = self.node(ExprKind::Map(Vec::new()))?;
        let condition = self.literal(Literal::Bool(true))?;
        let mut args = vec![self.accumulator()?];
        if keyed {
            args.push(self.ident(&variables.0)?);
        }
        args.push(value);
        let sum = self.call("cel.@mapInsert", args)?;
        let step = self.step(filter, sum)?;
        let result = self.accumulator()?;
        self.fold(range, variables, [initial, condition, step, result]).map(Ok)
    }

    /// Binds a name to a value for one expression, by a loop without steps.
    fn bind(&mut self, name: &str, initial: ExprId, result: ExprId) -> Parsed<ExprId> {
        let range = self.list(&[])?;
        let condition = self.literal(Literal::Bool(false))?;
        let step = self.ident(name)?;
        let (variable, accumulator) = (UNUSED.to_owned(), name.to_owned());
        let fold = Fold { range, variable, second: None, accumulator, initial, condition, step, result };
        self.node(ExprKind::Fold(Box::new(fold)))
    }

    fn optional(&mut self, wanted: Macro, target: ExprId, args: &[ExprId]) -> Expanded {
        let Some(name) = self.name(args[0]) else {
            let (function, _, _) = wanted.signature();
            let message = format!("{function}() variable name must be a simple identifier");
            return Ok(Err(Refused { at: args[0], message }));
        };
        let present = self.member("hasValue", target, Vec::new())?;
        let copy = self.copy(target)?;
        let value = self.member("value", copy, Vec::new())?;
        let mut mapped = self.bind(&name, value, args[1])?;
        if wanted == Macro::OptMap {
            mapped = self.call("optional.of", vec![mapped])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![present, mapped, none]).map(Ok)
    }

    fn sorted(&mut self, target: ExprId, args: &[ExprId]) -> Expanded {
        match self.kind(target) {
            ExprKind::List(_)
            | ExprKind::Select { .. }
            | ExprKind::Has { .. }
            | ExprKind::Ident(_)
            | ExprKind::Fold(_)
            | ExprKind::Call { .. } => {}
            ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. } => {
                let message =
                    "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
                return Ok(Err(Refused { at: target, message: message.to_owned() }));
            }
        }
        let variable = accept!(self.variable(args[0], "argument is not an identifier"));
        let input = self.ident(SORTED)?;
        let keys = accept!(self.collected(input, (variable, None), None, args[1])?);
        let input = self.ident(SORTED)?;
        let call = self.member("@sortByAssociatedKeys", input, vec![keys])?;
        self.bind(SORTED, target, call).map(Ok)
    }

    /// Copies a tree. Nodes keep their positions; entries and fields get the position of the macro.
    fn copy(&mut self, id: ExprId) -> Parsed<ExprId> {
        let node = self.parser.nodes[id.0 as usize].clone();
        let kind = match node.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => node.kind,
            ExprKind::Select { operand, field } => ExprKind::Select { operand: self.copy(operand)?, field },
            ExprKind::Has { operand, field } => ExprKind::Has { operand: self.copy(operand)?, field },
            ExprKind::Call { target, function, args } => {
                let target = target.map(|target| self.copy(target)).transpose()?;
                let args = args.into_iter().map(|arg| self.copy(arg)).collect::<Parsed<_>>()?;
                ExprKind::Call { target, function, args }
            }
            ExprKind::List(elements) => {
                let copies = elements.into_iter().map(|e| Ok(Element { value: self.copy(e.value)?, ..e }));
                ExprKind::List(copies.collect::<Parsed<_>>()?)
            }
            ExprKind::Map(entries) => {
                let position = self.open;
                let copies = entries.into_iter().map(|e| {
                    Ok(Entry { position, key: self.copy(e.key)?, value: self.copy(e.value)?, optional: e.optional })
                });
                ExprKind::Map(copies.collect::<Parsed<_>>()?)
            }
            ExprKind::Struct { name, fields } => {
                let position = self.open;
                let copies = fields.into_iter().map(|f| Ok(Field { position, value: self.copy(f.value)?, ..f }));
                ExprKind::Struct { name, fields: copies.collect::<Parsed<_>>()? }
            }
            ExprKind::Fold(fold) => {
                let [range, initial, condition, step, result] = Ast::fold_children(&fold);
                ExprKind::Fold(Box::new(Fold {
                    range: self.copy(range)?,
                    initial: self.copy(initial)?,
                    condition: self.copy(condition)?,
                    step: self.copy(step)?,
                    result: self.copy(result)?,
                    ..*fold
                }))
            }
        };
        self.parser.push(node.position, kind)
    }
}

fn overwrites(name: &str, at: ExprId) -> Result<(), Refused> {
    if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
        return Err(Refused { at, message: "iteration variable overwrites accumulator variable".to_owned() });
    }
    Ok(())
}
