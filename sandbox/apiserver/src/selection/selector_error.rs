//! Upstream's error messages for invalid label selectors. Pure; valid selectors are parsed elsewhere.
//!
//! # Upstream
//! `apimachinery/pkg/labels/selector.go`

/// Returns the syntax error of a selector; `None` if it is valid.
pub(crate) fn why(text: &str) -> Option<String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    parser.selector().err()
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(String),
    /// Signs that are no operator, with what is said of them.
    Unknown(String),
    End,
}

impl Token {
    fn literal(&self) -> &str {
        match self {
            Self::Word(text) | Self::Symbol(text) | Self::Unknown(text) => text,
            Self::End => "",
        }
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self, Self::Symbol(text) if text == symbol)
    }
}

const SYMBOLS: [&str; 9] = ["!", "=", "==", "!=", "(", ")", ",", "<", ">"];

fn tokens(text: &str) -> Vec<Token> {
    let is_sign = |c: char| SYMBOLS.iter().any(|symbol| symbol.starts_with(c));
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let taken = if is_sign(first) {
            // The longest run that is an operator.
            let longest = (1..=2).filter_map(|length| rest.get(..length)).rfind(|text| SYMBOLS.contains(text));
            let symbol = longest.unwrap_or(&rest[..first.len_utf8()]);
            tokens.push(if longest.is_some() {
                Token::Symbol(symbol.to_owned())
            } else {
                Token::Unknown(format!("error expected: keyword found '{symbol}'"))
            });
            symbol.len()
        } else {
            let end = rest.find(|c| is_sign(c) || is_space(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        };
        rest = rest[taken..].trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<(), String> {
        loop {
            let first = self.peek();
            if *first == Token::End {
                return Ok(());
            }
            if !matches!(first, Token::Word(_)) && !first.is("!") {
                return Err(found(first, ", expected: !, identifier, or 'end of string'"));
            }
            self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            let end = self.next();
            if end == Token::End {
                return Ok(());
            }
            if !end.is(",") {
                return Err(found(&end, ", expected: ',' or 'end of string'"));
            }
            let after = self.peek();
            if !matches!(after, Token::Word(_)) && !after.is("!") {
                return Err(found(after, ", expected: identifier after ','"));
            }
        }
    }

    fn requirement(&mut self) -> Result<(), String> {
        let mut key = self.next();
        let absent = key.is("!");
        if absent {
            key = self.next();
        }
        if !matches!(key, Token::Word(_)) {
            return Err(found(&key, ", expected: identifier"));
        }
        if absent || *self.peek() == Token::End || self.peek().is(",") {
            return Ok(());
        }
        let operator = self.next();
        match operator.literal() {
            "in" | "notin" => self.values(),
            "=" | "==" | "!=" => self.value().map(drop),
            "<" | ">" => {
                let value = self.value()?;
                if value.parse::<i64>().is_ok() {
                    return Ok(());
                }
                Err(format!(
                    "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ))
            }
            _ => Err(found(&operator, ", expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if *self.peek() == Token::End || self.peek().is(",") {
            return Ok(String::new());
        }
        let value = self.next();
        if matches!(value, Token::Word(_)) {
            Ok(value.literal().to_owned())
        } else {
            Err(found(&value, ", expected: identifier"))
        }
    }

    fn values(&mut self) -> Result<(), String> {
        let open = self.next();
        if !open.is("(") {
            return Err(found(&open, " expected: '('"));
        }
        let first = self.peek();
        if matches!(first, Token::Word(_)) || first.is(",") || first.is(")") {
            self.list()
        } else {
            Err(found(first, ", expected: ',', ')' or identifier"))
        }
    }

    fn list(&mut self) -> Result<(), String> {
        loop {
            let item = self.next();
            let after = self.peek();
            if item.is(")") {
                return Ok(());
            }
            if matches!(item, Token::Word(_)) && !after.is(",") && !after.is(")") {
                return Err(found(after, ", expected: ',' or ')'"));
            }
            if !matches!(item, Token::Word(_)) && !item.is(",") {
                return Err(found(&item, ", expected: ',', or identifier"));
            }
        }
    }
}

fn found(token: &Token, expected: &str) -> String {
    format!("found '{}'{expected}", token.literal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_equal_upstream() {
        for (text, expected) in [
            ("a=b,c!=d,e in (f,g),!h,i,j>1", None),
            ("tier in front", Some("unable to parse requirement: found 'front' expected: '('")),
            ("a in", Some("unable to parse requirement: found '' expected: '('")),
            ("==", Some("found '==', expected: !, identifier, or 'end of string'")),
            ("x===", Some("unable to parse requirement: found '=', expected: identifier")),
            ("a b", Some("unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt")),
            ("a,", Some("found '', expected: identifier after ','")),
            ("a=b c", Some("found 'c', expected: ',' or 'end of string'")),
            ("a in (b c)", Some("unable to parse requirement: found 'c', expected: ',' or ')'")),
            (
                "x>abc",
                Some(
                    "unable to parse requirement: values[0]: Invalid value: \"abc\": for 'Gt', 'Lt' operators, the value must be an integer",
                ),
            ),
        ] {
            assert_eq!(why(text).as_deref(), expected, "{text}");
        }
    }
}
