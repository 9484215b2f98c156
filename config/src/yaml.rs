//! A YAML or JSON document as a tree whose nodes know their positions.

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span};

use crate::error::{Position, Problem};

/// Deeper than any section, and shallow enough for recursion.
const DEEPEST: usize = 16;

/// The parser's error for text that is nested more deeply than [`DEEPEST`].
const TOO_DEEP: &str = "recursion limit exceeded";

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) content: Content,
}

/// The value of a [`Node`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text without quotes. Its form decides its type.
    Plain(String),
    /// Text in quotes or in a block.
    Quoted(String),
    List(Vec<Node>),
    /// In the order of the file, duplicates included.
    Map(Vec<(Scalar, Node)>),
}

/// A key and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) at: Position,
    pub(crate) text: String,
}

/// The first thing that makes a document unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) at: Position,
    pub(crate) problem: Problem,
}

impl Failure {
    fn unsupported(at: Position, feature: &'static str) -> Self {
        Self { at, problem: Problem::Unsupported { feature } }
    }

    fn syntax(at: Position, reason: impl Into<String>) -> Self {
        Self { at, problem: Problem::Syntax { reason: reason.into() } }
    }
}

/// Reads the only document of `bytes`; `None` when there is nothing in it.
///
/// Anchors, aliases, merge keys and tags are refused: a configuration file does not need them, and without them the
/// tree is never larger than the text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Node>, Failure> {
    let text = text_of(bytes)?;
    let options = granit_parser::options! {
        emit_comments: false,
        emit_anchor_events: true,
        emit_unresolved_aliases: true,
        disallow_directives: true,
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut reader = Reader { events: Parser::new_from_str_with_options(text, options) };
    let mut root = None;
    let mut documents = 0;
    loop {
        let (event, at) = reader.next()?;
        if matches!(event, Event::StreamEnd) {
            return Ok(root);
        }
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
            if documents > 1 {
                return Err(Failure::unsupported(at, "several documents in one file"));
            }
        } else if !matches!(event, Event::StreamStart | Event::DocumentEnd) {
            root = Some(reader.node(event, at, 0)?);
        }
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, Failure> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Failure::syntax(Position { line, column }, "not UTF-8")
    })
}

struct Reader<'text, I: granit_parser::BorrowedInput<'text>> {
    events: Parser<'text, I>,
}

impl<'text, I: granit_parser::BorrowedInput<'text>> Reader<'text, I> {
    fn next(&mut self) -> Result<(Event<'text>, Position), Failure> {
        let next: Option<Result<(Event<'text>, Span), ScanError>> = self.events.next();
        match next {
            Some(Ok((event, span))) => Ok((event, position(&span.start))),
            Some(Err(error)) if error.info() == TOO_DEEP => {
                Err(Failure::unsupported(position(error.marker()), "so many nested values"))
            }
            Some(Err(error)) => Err(Failure::syntax(position(error.marker()), error.info())),
            None => Err(Failure::syntax(Position { line: 1, column: 1 }, "the document does not end")),
        }
    }

    /// The node that begins with `event`.
    fn node(&mut self, event: Event<'text>, at: Position, depth: usize) -> Result<Node, Failure> {
        if depth >= DEEPEST {
            return Err(Failure::unsupported(at, "so many nested values"));
        }
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "the enum is not exhaustive, and a feature of the crate adds to it"
        )]
        let content = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                return Err(Failure::unsupported(at, "tags"));
            }
            Event::Scalar(_, _, 1.., None)
            | Event::SequenceStart(_, 1.., None)
            | Event::MappingStart(_, 1.., None)
            | Event::Alias(_)
            | Event::UnresolvedAlias(_) => return Err(Failure::unsupported(at, "anchors and aliases")),
            Event::Scalar(text, ScalarStyle::Plain, ..) => Content::Plain(text.into_owned()),
            Event::Scalar(text, ..) => Content::Quoted(text.into_owned()),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            // Not a node; only a parser that contradicts itself gets here.
            other => return Err(Failure::syntax(at, format!("unexpected {other:?}"))),
        };
        Ok(Node { at, content })
    }

    fn list(&mut self, depth: usize) -> Result<Content, Failure> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, at) => items.push(self.node(event, at, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Content, Failure> {
        let mut entries = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(Content::Map(entries));
            }
            let key = match self.node(event, at, depth + 1)?.content {
                Content::Plain(text) if text == "<<" => return Err(Failure::unsupported(at, "merge keys")),
                Content::Plain(text) | Content::Quoted(text) => Scalar { at, text },
                Content::List(_) | Content::Map(_) => return Err(Failure::unsupported(at, "lists and maps as keys")),
            };
            let (event, at) = self.next()?;
            entries.push((key, self.node(event, at, depth + 1)?));
        }
    }
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

/// Returns `true` if plain text means null.
pub(crate) fn is_null(plain: &str) -> bool {
    matches!(plain, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns `true` if every YAML reader takes plain text for a string: it is not null, a number or a boolean in YAML 1.1
/// or 1.2.
pub(crate) fn is_string(plain: &str) -> bool {
    let boolean = ["true", "false", "yes", "no", "on", "off", "y", "n"];
    let digits = plain.trim_start_matches(['-', '+', '.']);
    let number = digits.starts_with(|c: char| c.is_ascii_digit())
        && (digits.parse::<f64>().is_ok()
            || ["0x", "0o", "0b"].iter().any(|prefix| digits.starts_with(prefix))
            || digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_' || byte == b':'));
    let infinite = [".inf", ".nan"].contains(&plain.trim_start_matches(['-', '+']).to_ascii_lowercase().as_str());
    !(is_null(plain) || number || infinite || boolean.contains(&plain.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(line: usize, column: usize) -> Position {
        Position { line, column }
    }

    fn key(line: usize, column: usize, text: &str) -> Scalar {
        Scalar { at: at(line, column), text: text.to_owned() }
    }

    fn plain(line: usize, column: usize, text: &str) -> Node {
        Node { at: at(line, column), content: Content::Plain(text.to_owned()) }
    }

    #[test]
    fn every_node_knows_its_line_and_column() {
        let tree = parse(b"# head\nA:\n  B: 1\nC: [x, 'y']\n").expect("the text is YAML");
        let list = vec![plain(4, 5, "x"), Node { at: at(4, 8), content: Content::Quoted("y".to_owned()) }];
        let expected = Content::Map(vec![
            (key(2, 1, "A"), Node { at: at(3, 3), content: Content::Map(vec![(key(3, 3, "B"), plain(3, 6, "1"))]) }),
            (key(4, 1, "C"), Node { at: at(4, 4), content: Content::List(list) }),
        ]);
        assert_eq!(tree, Some(Node { at: at(2, 1), content: expected }));
    }

    #[test]
    fn json_is_read_with_tabs_and_escapes() {
        let tree = parse(b"{\n\t\"A\": {\"B\":1},\n\t\"C\": \"\\u00e9\\/\"\n}").expect("the text is JSON");
        let expected = Content::Map(vec![
            (key(2, 2, "A"), Node { at: at(2, 7), content: Content::Map(vec![(key(2, 8, "B"), plain(2, 12, "1"))]) }),
            (key(3, 2, "C"), Node { at: at(3, 7), content: Content::Quoted("é/".to_owned()) }),
        ]);
        assert_eq!(tree, Some(Node { at: at(1, 1), content: expected }));
    }

    #[test]
    fn what_a_configuration_does_not_need_is_refused_with_its_position() {
        let cases = [
            ("a: &x 1", at(1, 7), "anchors and aliases"),
            ("a: &x {b: 1}", at(1, 7), "anchors and aliases"),
            ("a: 1\nb: *x", at(2, 4), "anchors and aliases"),
            ("a: {<<: 1}", at(1, 5), "merge keys"),
            ("a: !!str 1", at(1, 10), "tags"),
            ("? [a]\n: 1", at(1, 3), "lists and maps as keys"),
            ("a: 1\n---\nb: 1", at(2, 1), "several documents in one file"),
        ];
        for (text, position, feature) in cases {
            assert_eq!(parse(text.as_bytes()), Err(Failure::unsupported(position, feature)), "{text}");
        }
    }

    #[test]
    fn broken_text_is_refused_with_its_position() {
        let failure = parse(b"a: [1\nb: 2").expect_err("the list does not end");
        assert!(matches!(failure.problem, Problem::Syntax { .. }), "{failure:?}");
        assert_eq!(parse(b"a: 1\nb\xff"), Err(Failure::syntax(at(2, 2), "not UTF-8")));
    }

    #[test]
    fn nothing_is_no_document() {
        for text in ["", "# only a comment\n", "\u{feff}"] {
            assert_eq!(parse(text.as_bytes()), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        for text in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000)] {
            let failure = parse(text.as_bytes()).expect_err("it is nested too deeply");
            assert_eq!(failure.problem, Problem::Unsupported { feature: "so many nested values" }, "{}", &text[..4]);
        }
    }

    #[test]
    fn text_that_some_reader_takes_for_something_else_is_no_string() {
        for text in ["", "~", "null", "true", "No", "on", "1", "-1.5", "1e3", "0x1F", "1_000", "12:30", ".inf", "-.5"] {
            assert!(!is_string(text), "{text:?}");
        }
        for text in ["10s", "*", "-foo", "/etc/x", "nothing", "1.2.3", "v1"] {
            assert!(is_string(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }

        #[test]
        fn no_yaml_like_text_panics(text in "[-a1:?\\[\\]{},&*!|>'\"%@#~< \n\t]{0,60}") {
            drop(parse(text.as_bytes()));
        }
    }
}
