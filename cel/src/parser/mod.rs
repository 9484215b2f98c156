//! Tokens to a tree.

mod macros;

pub use macros::Macro;

use crate::ast::{Ast, Element, Entry, Expr, ExprId, ExprKind, Field, Literal, Position};
use crate::lexer::{Token, TokenKind, tokens};
use crate::{Problem, literal};

/// Number of code points that a source may have.
pub const MAX_CODE_POINTS: usize = 100_000;
/// Depth that a tree may have, and nesting that a source may have.
pub const MAX_DEPTH: u32 = 250;
/// Number of nodes that a tree may have. A source has fewer, but some macros copy their receiver.
pub const MAX_NODES: u32 = 1_000_000;
/// Length of all names and strings in a tree, for the same reason.
const MAX_TEXT: usize = 16 * 1024 * 1024;
const MAX_PROBLEMS: usize = 100;

const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Parses an expression. Macros such as `has` and `all` stay calls.
///
/// # Errors
///
/// Returns the problems, at least one, in the order in which they are found. The first syntax error ends the parse.
pub fn parse(source: &str) -> Result<Ast, Vec<Problem>> {
    parse_with(source, &[])
}

/// Parses an expression and expands the macros that are given.
///
/// # Errors
///
/// As [`parse`], and a problem for each macro whose arguments it cannot take.
pub fn parse_with(source: &str, macros: &[Macro]) -> Result<Ast, Vec<Problem>> {
    let size = source.chars().count();
    if size > MAX_CODE_POINTS {
        return Err(vec![Problem {
            position: None,
            message: format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"),
        }]);
    }
    let tokens = tokens(source).map_err(|position| vec![*syntax(position, "unknown token").0])?;
    let mut parser = Parser {
        tokens,
        macros,
        at: 0,
        nesting: 0,
        nodes: Vec::new(),
        depths: Vec::new(),
        text: 0,
        problems: Vec::new(),
    };
    match parser.whole() {
        Ok(root) if parser.problems.is_empty() => Ok(Ast { nodes: parser.nodes, root }),
        Ok(_) => Err(parser.problems),
        Err(problem) => {
            parser.problems.push(*problem.0);
            Err(parser.problems)
        }
    }
}

/// The problem that ends a parse. The box keeps the frames of the recursion small.
pub(crate) struct Stop(Box<Problem>);

fn refused(position: Position, message: String) -> Stop {
    Stop(Box::new(Problem { position: Some(position), message }))
}

fn syntax(position: Position, message: &str) -> Stop {
    refused(position, format!("Syntax error: {message}"))
}

fn text_length(kind: &ExprKind) -> usize {
    match kind {
        ExprKind::Literal(Literal::String(text)) | ExprKind::Ident(text) => text.len(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Select { field, .. } | ExprKind::Has { field, .. } => field.len(),
        ExprKind::Call { function, .. } => function.len(),
        ExprKind::Struct { name, fields } => fields.iter().map(|field| field.name.len()).sum::<usize>() + name.len(),
        ExprKind::Fold(fold) => {
            fold.variable.len() + fold.accumulator.len() + fold.second.as_ref().map_or(0, String::len)
        }
        ExprKind::Literal(
            Literal::Null | Literal::Bool(_) | Literal::Int(_) | Literal::Uint(_) | Literal::Double(_),
        )
        | ExprKind::List(_)
        | ExprKind::Map(_) => 0,
    }
}

pub(crate) type Parsed<T> = Result<T, Stop>;

pub(crate) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    macros: &'a [Macro],
    at: usize,
    nesting: u32,
    pub(crate) nodes: Vec<Expr>,
    depths: Vec<u32>,
    text: usize,
    problems: Vec<Problem>,
}

struct Operator {
    level: u8,
    name: &'static str,
    position: Position,
}

const OR: u8 = 1;
const AND: u8 = 2;

fn operator(token: Token<'_>) -> Option<(u8, &'static str)> {
    if token.kind != TokenKind::Fixed {
        return None;
    }
    Some(match token.text {
        "||" => (OR, "_||_"),
        "&&" => (AND, "_&&_"),
        "<" => (3, "_<_"),
        "<=" => (3, "_<=_"),
        ">" => (3, "_>_"),
        ">=" => (3, "_>=_"),
        "==" => (3, "_==_"),
        "!=" => (3, "_!=_"),
        "in" => (3, "@in"),
        "+" => (4, "_+_"),
        "-" => (4, "_-_"),
        "*" => (5, "_*_"),
        "/" => (5, "_/_"),
        "%" => (5, "_%_"),
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    fn token(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn ahead(&self, by: usize) -> Token<'a> {
        self.tokens[(self.at + by).min(self.tokens.len() - 1)]
    }

    fn is(&self, text: &str) -> bool {
        self.token().kind == TokenKind::Fixed && self.token().text == text
    }

    fn eat(&mut self, text: &str) -> Option<Position> {
        let position = self.token().position;
        self.is(text).then(|| {
            self.at += 1;
            position
        })
    }

    fn need(&mut self, text: &str) -> Parsed<Position> {
        self.eat(text).ok_or_else(|| syntax(self.token().position, &format!("expected '{text}'")))
    }

    fn report(&mut self, position: Position, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { position: Some(position), message: message.into() });
        }
    }

    pub(crate) fn push(&mut self, position: Position, kind: ExprKind) -> Parsed<ExprId> {
        let depth = |id: &ExprId| self.depths[id.0 as usize];
        let below = match &kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => 0,
            ExprKind::Select { operand, .. } | ExprKind::Has { operand, .. } => depth(operand),
            ExprKind::Call { target, args, .. } => args.iter().chain(target).map(depth).max().unwrap_or(0),
            ExprKind::List(elements) => elements.iter().map(|e| depth(&e.value)).max().unwrap_or(0),
            ExprKind::Map(entries) => entries.iter().map(|e| depth(&e.key).max(depth(&e.value))).max().unwrap_or(0),
            ExprKind::Struct { fields, .. } => fields.iter().map(|f| depth(&f.value)).max().unwrap_or(0),
            ExprKind::Fold(fold) => Ast::fold_children(fold).iter().map(depth).max().unwrap_or(0),
        };
        if below >= MAX_DEPTH {
            return Err(refused(position, "max recursion depth exceeded".to_owned()));
        }
        self.text = self.text.saturating_add(text_length(&kind));
        let id = u32::try_from(self.nodes.len()).ok().filter(|id| *id < MAX_NODES && self.text <= MAX_TEXT);
        let id = id.ok_or_else(|| syntax(position, "the expression has too many parts after macros are expanded"))?;
        self.nodes.push(Expr { position, kind });
        self.depths.push(below + 1);
        Ok(ExprId(id))
    }

    pub(crate) fn call(&mut self, position: Position, function: &str, args: Vec<ExprId>) -> Parsed<ExprId> {
        self.push(position, ExprKind::Call { target: None, function: function.to_owned(), args })
    }

    fn call_or_macro(
        &mut self,
        open: Position,
        target: Option<ExprId>,
        function: String,
        args: Vec<ExprId>,
    ) -> Parsed<ExprId> {
        let wanted = macros::find(self.macros, &function, target.is_some(), args.len());
        let Some(wanted) = wanted else { return self.push(open, ExprKind::Call { target, function, args }) };
        match macros::expand(self, wanted, open, target, &args)? {
            Ok(expanded) => Ok(expanded),
            Err(refused) => {
                let position = self.nodes[refused.at.0 as usize].position;
                self.report(position, refused.message);
                self.push(position, ExprKind::Literal(Literal::Null))
            }
        }
    }

    fn whole(&mut self) -> Parsed<ExprId> {
        let root = self.expr()?;
        if self.token().kind == TokenKind::End {
            Ok(root)
        } else {
            Err(syntax(self.token().position, "expected the end of the expression"))
        }
    }

    fn expr(&mut self) -> Parsed<ExprId> {
        if self.nesting >= MAX_DEPTH {
            let message = format!("expression recursion limit exceeded: {MAX_DEPTH}");
            return Err(refused(self.token().position, message));
        }
        self.nesting += 1;
        let condition = self.binary()?;
        let result = if let Some(position) = self.eat("?") {
            let then = self.binary()?;
            self.need(":")?;
            let otherwise = self.expr()?;
            self.call(position, "_?_:_", vec![condition, then, otherwise])?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(result)
    }

    /// Parses operands with operators by two stacks, because recursion per level of precedence would need a large stack.
    fn binary(&mut self) -> Parsed<ExprId> {
        let mut operands = vec![self.unary()?];
        let mut operators: Vec<Operator> = Vec::new();
        while let Some((level, name)) = operator(self.token()) {
            let position = self.token().position;
            self.at += 1;
            // Chains of `&&` and `||` are kept until they end, because they become a balanced tree.
            while operators.last().is_some_and(|o| o.level > level || (o.level == level && level > AND)) {
                self.reduce(&mut operands, &mut operators)?;
            }
            operators.push(Operator { level, name, position });
            operands.push(self.unary()?);
        }
        while !operators.is_empty() {
            self.reduce(&mut operands, &mut operators)?;
        }
        operands.pop().ok_or_else(|| syntax(self.token().position, "expected an expression"))
    }

    fn reduce(&mut self, operands: &mut Vec<ExprId>, operators: &mut Vec<Operator>) -> Parsed<()> {
        let level = operators.last().map_or(0, |o| o.level);
        let chain = if level > AND { 1 } else { operators.iter().rev().take_while(|o| o.level == level).count() };
        let chained = operators.split_off(operators.len() - chain);
        let terms = operands.split_off(operands.len() - chain - 1);
        let tree = self.balanced(&chained, &terms)?;
        operands.push(tree);
        Ok(())
    }

    fn balanced(&mut self, operators: &[Operator], terms: &[ExprId]) -> Parsed<ExprId> {
        let middle = operators.len() / 2;
        let Some(operator) = operators.get(middle) else { return Ok(terms[0]) };
        let left = self.balanced(&operators[..middle], &terms[..=middle])?;
        let right = self.balanced(&operators[middle + 1..], &terms[middle + 1..])?;
        self.call(operator.position, operator.name, vec![left, right])
    }

    fn unary(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        let sign = if self.is("!") { "!" } else { "-" };
        let start = self.at;
        let number = |t: Token<'_>| matches!(t.kind, TokenKind::Int | TokenKind::Float);
        if sign == "-" && self.is("-") && number(self.ahead(1)) {
            return self.member();
        }
        while self.eat(sign).is_some() {}
        let count = self.at - start;
        if count > 0 && sign == "-" && self.is("!") {
            return Err(syntax(self.token().position, "unexpected '!'"));
        }
        let operand = self.member()?;
        if count.is_multiple_of(2) {
            return Ok(operand);
        }
        self.call(first.position, if sign == "!" { "!_" } else { "-_" }, vec![operand])
    }

    fn member(&mut self) -> Parsed<ExprId> {
        let mut operand = self.primary()?;
        loop {
            if let Some(dot) = self.eat(".") {
                let optional = self.eat("?").is_some();
                let name = self.token();
                let field = self.field()?;
                if optional {
                    let literal = ExprKind::Literal(Literal::String(field));
                    let field = self.push(name.position, literal)?;
                    operand = self.call(dot, "_?._", vec![operand, field])?;
                } else if name.kind == TokenKind::Ident && self.is("(") {
                    let open = self.token().position;
                    let args = self.args()?;
                    operand = self.call_or_macro(open, Some(operand), field, args)?;
                } else {
                    operand = self.push(dot, ExprKind::Select { operand, field })?;
                }
            } else if let Some(open) = self.eat("[") {
                let function = if self.eat("?").is_some() { "_[?_]" } else { "_[_]" };
                let index = self.expr()?;
                self.need("]")?;
                operand = self.call(open, function, vec![operand, index])?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn field(&mut self) -> Parsed<String> {
        let token = self.token();
        let name = match token.kind {
            TokenKind::Ident => token.text,
            TokenKind::Escaped => token.text.trim_matches('`'),
            TokenKind::Int
            | TokenKind::Uint
            | TokenKind::Float
            | TokenKind::Quoted
            | TokenKind::Fixed
            | TokenKind::End => return Err(syntax(token.position, "expected the name of a field")),
        };
        self.at += 1;
        Ok(name.to_owned())
    }

    fn args(&mut self) -> Parsed<Vec<ExprId>> {
        self.need("(")?;
        let mut args = Vec::new();
        if self.eat(")").is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.eat(",").is_none() {
                self.need(")")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        let token = self.token();
        let position = token.position;
        if self.eat("(").is_some() {
            let inner = self.expr()?;
            self.need(")")?;
            return Ok(inner);
        }
        if self.is("[") {
            return self.list();
        }
        if self.is("{") {
            return self.map();
        }
        let dotted = self.is(".");
        if self.ahead(usize::from(dotted)).kind == TokenKind::Ident {
            return self.name(dotted);
        }
        let value = self.literal(position)?;
        self.push(position, ExprKind::Literal(value))
    }

    fn literal(&mut self, position: Position) -> Parsed<Literal> {
        let negative = self.eat("-").is_some();
        let token = self.token();
        if negative && !matches!(token.kind, TokenKind::Int | TokenKind::Float) {
            return Err(syntax(token.position, "expected an expression"));
        }
        let value = match token.kind {
            TokenKind::Int => literal::int(token.text, negative).map(Literal::Int).ok_or("invalid int literal"),
            TokenKind::Float => {
                literal::double(token.text, negative).map(Literal::Double).ok_or("invalid double literal")
            }
            TokenKind::Uint => literal::uint(token.text).map(Literal::Uint).ok_or("invalid uint literal"),
            TokenKind::Quoted => literal::quoted(token.text),
            TokenKind::Fixed if token.text == "true" => Ok(Literal::Bool(true)),
            TokenKind::Fixed if token.text == "false" => Ok(Literal::Bool(false)),
            TokenKind::Fixed if token.text == "null" => Ok(Literal::Null),
            TokenKind::Fixed | TokenKind::Ident | TokenKind::Escaped | TokenKind::End => {
                return Err(syntax(token.position, "expected an expression"));
            }
        };
        self.at += 1;
        Ok(value.unwrap_or_else(|message| {
            self.report(position, message);
            Literal::Null
        }))
    }

    fn name(&mut self, dotted: bool) -> Parsed<ExprId> {
        let start = self.token().position;
        self.at += usize::from(dotted);
        let token = self.token();
        let mut name = if dotted { format!(".{}", token.text) } else { token.text.to_owned() };
        let mut length = 1;
        while self.ahead(length).text == "." && self.ahead(length + 1).kind == TokenKind::Ident {
            length += 2;
        }
        if self.ahead(length).kind == TokenKind::Fixed && self.ahead(length).text == "{" {
            for by in 1..length {
                name.push_str(self.ahead(by).text);
            }
            self.at += length;
            return self.message(name);
        }
        self.at += 1;
        if RESERVED.contains(&token.text) {
            self.report(start, format!("reserved identifier: {}", token.text));
        }
        if self.is("(") {
            let open = self.token().position;
            let args = self.args()?;
            return self.call_or_macro(open, None, name, args);
        }
        self.push(token.position, ExprKind::Ident(name))
    }

    fn list(&mut self) -> Parsed<ExprId> {
        let open = self.need("[")?;
        let mut elements = Vec::new();
        while !self.is("]") && !self.is(",") {
            let optional = self.eat("?").is_some();
            elements.push(Element { optional, value: self.expr()? });
            if self.eat(",").is_none() {
                break;
            }
        }
        if elements.is_empty() {
            self.eat(",");
        }
        self.need("]")?;
        self.push(open, ExprKind::List(elements))
    }

    fn map(&mut self) -> Parsed<ExprId> {
        let open = self.need("{")?;
        let mut entries = Vec::new();
        while !self.is("}") && !self.is(",") {
            let optional = self.eat("?").is_some();
            let key = self.expr()?;
            let position = self.need(":")?;
            entries.push(Entry { optional, position, key, value: self.expr()? });
            if self.eat(",").is_none() {
                break;
            }
        }
        if entries.is_empty() {
            self.eat(",");
        }
        self.need("}")?;
        self.push(open, ExprKind::Map(entries))
    }

    fn message(&mut self, name: String) -> Parsed<ExprId> {
        let open = self.need("{")?;
        let mut fields = Vec::new();
        while !self.is("}") && !self.is(",") {
            let optional = self.eat("?").is_some();
            let name = self.field()?;
            let position = self.need(":")?;
            fields.push(Field { optional, position, name, value: self.expr()? });
            if self.eat(",").is_none() {
                break;
            }
        }
        if fields.is_empty() {
            self.eat(",");
        }
        self.need("}")?;
        self.push(open, ExprKind::Struct { name, fields })
    }
}
