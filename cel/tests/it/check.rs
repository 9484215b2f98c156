//! The checker beside cel-go's in the environment of Kubernetes 1.37, and its bounds.

use std::sync::LazyLock;

use kcm_cel::{Environment, Type, TypeProvider, kubernetes};
use proptest::prelude::*;

/// The object type of the corpus.
struct Objects;

const FIELDS: [(&str, &str, &str); 22] = [
    ("Obj", "s", "string"),
    ("Obj", "i", "int"),
    ("Obj", "u", "uint"),
    ("Obj", "d", "double"),
    ("Obj", "b", "bool"),
    ("Obj", "by", "bytes"),
    ("Obj", "ts", "timestamp"),
    ("Obj", "du", "duration"),
    ("Obj", "dy", "dyn"),
    ("Obj", "l", "list(string)"),
    ("Obj", "m", "map(string, string)"),
    ("Obj", "o", "Obj.o"),
    ("Obj", "lo", "list(Obj.lo.@idx)"),
    ("Obj", "mo", "map(string, Obj.o)"),
    ("Obj", "__namespace__", "string"),
    ("Obj", "namespace", "string"),
    ("Obj", "a__dash__b", "int"),
    ("Obj.o", "x", "int"),
    ("Obj.o", "s", "string"),
    ("Obj.lo.@idx", "name", "string"),
    ("Obj.lo.@idx", "port", "int"),
    ("Obj.lo.@idx", "", "dyn"),
];

fn read(text: &str) -> Type {
    text.parse().expect("the types of the corpus must be well formed")
}

impl TypeProvider for Objects {
    fn find_type(&self, name: &str) -> Option<Type> {
        match name {
            "duration" | "timestamp" => Some(read(name)),
            // Lists and maps of the object are types with a name too.
            "Obj.l" => Some(read("list(string)")),
            "Obj.m" => Some(read("map(string, string)")),
            "Obj.lo" => Some(read("list(Obj.lo.@idx)")),
            "Obj.mo" => Some(read("map(string, Obj.o)")),
            _ => FIELDS.iter().any(|(of, ..)| *of == name).then(|| Type::object(name)),
        }
    }

    fn find_field(&self, type_name: &str, field: &str) -> Option<Type> {
        let found = FIELDS.iter().find(|(of, name, _)| (*of, *name) == (type_name, field) && !field.is_empty());
        found.map(|(.., of)| read(of))
    }
}

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let variables = [
        ("obj", "Obj"),
        ("i", "int"),
        ("u", "uint"),
        ("d", "double"),
        ("s", "string"),
        ("b", "bool"),
        ("by", "bytes"),
        ("ts", "timestamp"),
        ("du", "duration"),
        ("dy", "dyn"),
        ("an", "any"),
        ("ls", "list(string)"),
        ("li", "list(int)"),
        ("m", "map(string, string)"),
        ("mi", "map(int, dyn)"),
        ("os", "optional_type(string)"),
        ("wi", "wrapper(int)"),
        ("ws", "wrapper(string)"),
        ("authorizer", "kubernetes.authorization.Authorizer"),
        ("x.y", "int"),
        ("unknown", "Unknown"),
    ];
    variables
        .into_iter()
        .fold(kubernetes::stored_expressions(), |environment, (name, of)| environment.with_variable(name, read(of)))
});

struct Row {
    expression: String,
    expected: Result<String, String>,
}

static CORPUS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = include_str!("../data/check.jsonl").lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("the corpus must be well formed");
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let expected = text("type").ok_or_else(|| text("issues").expect("the corpus must be well formed"));
        Row { expression: text("expression").expect("the corpus must be well formed"), expected }
    });
    rows.collect()
});

/// Returns the part of a text that is the same for both: everything, or the position of the first syntax error.
fn comparable(text: &str) -> &str {
    match text.split_once(": Syntax error: ") {
        Some((position, _)) if !position.contains('\n') => position,
        _ => text,
    }
}

#[test]
fn checks_as_cel_go_does() {
    let mut wrong = Vec::new();
    for Row { expression, expected } in &*CORPUS {
        let found = ENVIRONMENT.compile(expression, &Objects);
        let found = found.map(|checked| checked.result_type().to_string()).map_err(|issues| issues.to_string());
        let same = match (expected, &found) {
            (Ok(expected), Ok(found)) => expected == found,
            (Err(expected), Err(found)) => comparable(expected) == comparable(found),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        };
        if !same {
            wrong.push(format!("{expression}\n  cel-go {expected:?}\n  here   {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn refuses_types_and_trees_that_grow_without_bound() {
    let chain = |first: &str, link: &str, times| format!("{first}{}", link.repeat(times));
    for (expression, message) in [
        (chain("[1]", ".map(a, {a: a})", 60), "the types of the expression are too complex to be checked"),
        (chain("os", ".optMap(x, x)", 60), "Syntax error: the expression has too many parts after macros are expanded"),
        (
            format!("{}.?a{}", "obj".repeat(20_000), ".optMap(x, x)".repeat(25)),
            "Syntax error: the expression has too many parts after macros are expanded",
        ),
    ] {
        let issues = ENVIRONMENT.compile(&expression, &Objects).expect_err("the expression must be refused");
        assert_eq!(issues.problems()[0].message, message, "{}", &expression[..40]);
    }
}

#[test]
fn checks_deep_and_long_expressions_without_overflowing_the_stack() {
    for expression in [
        format!("{}1{}", "[".repeat(248), "]".repeat(248)),
        format!("{}1{}", "[1].map(x, ".repeat(60), ")".repeat(60)),
        format!("obj{}", ".dy".repeat(240)),
        format!("ls{}", ".map(x, x)".repeat(240)),
        format!("ls{}", ".map(x, [x, x])".repeat(200)),
        format!("1{}", " + 1".repeat(240)),
        format!("{}1{}", "-(".repeat(120), ")".repeat(120)),
        format!("i > 1{}", " && i > 1".repeat(10_000)),
        format!("[1{}]", ", 1".repeat(30_000)),
    ] {
        let checked = ENVIRONMENT.compile(&expression, &Objects);
        assert!(checked.is_ok(), "{}: {}", &expression[..40], checked.err().map_or(String::new(), |e| e.to_string()));
    }
}

/// The stack of a thread is small here, so that callers need no large one.
#[test]
fn refuses_or_checks_any_nesting_with_a_small_stack() {
    let nested = |(open, inner, close): (&str, &str, &str), times| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let forms = [
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("{", "1", ": 1}"),
        ("size(", "s", ")"),
        ("s.contains(", "s", ")"),
        ("(", "s", ").size()"),
        ("b ? 1 : ", "1", ""),
        ("!(", "b", ")"),
        ("1 + (", "1", ")"),
        ("b && (", "b", ")"),
        ("Obj{s: ", "s", "}"),
        ("ls[", "0", "]"),
        ("ls.all(x, ", "b", ")"),
        ("m.transformMap(k, v, ", "1", ")"),
        ("os.optMap(x, ", "1", ")"),
        ("os.optFlatMap(x, ", "os", ")"),
        ("ls.sortBy(x, ", "1", ")"),
        ("[optional.none()].map(x, [x, ", "[]", "])"),
    ];
    let deepest = move || {
        for form in forms {
            for times in [10, 20, 30, 40, 60, 80, 120, 240, 245, 248, 249, 250, 1_000] {
                let issues = ENVIRONMENT.compile(&nested(form, times), &Objects).map_err(|issues| issues.to_string());
                assert!(times <= 250 || issues.is_err(), "{form:?}");
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(1536 * 1024).spawn(deepest).expect("a thread must start");
    thread.join().expect("the thread must not fail");
}

#[test]
fn keeps_a_hundred_problems() {
    let expression = format!("[undeclared{}]", ", undeclared".repeat(149));
    let issues = ENVIRONMENT.compile(&expression, &Objects).expect_err("the expression must be refused");
    assert_eq!((issues.problems().len(), issues.dropped()), (100, 50));
    let text = issues.to_string();
    assert!(text.ends_with("\n50 more errors were truncated"), "{text}");
}

#[test]
fn refuses_long_sources_without_a_position() {
    let expression = "a".repeat(100_001);
    let issues = ENVIRONMENT.compile(&expression, &Objects).expect_err("the expression must be refused");
    let text = "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000";
    assert_eq!(issues.to_string(), text);
}

#[test]
fn shows_no_line_of_more_than_16384_bytes() {
    let shown = |length: usize| {
        let expression = format!("'{}' + 1", "a".repeat(length - 6));
        ENVIRONMENT.compile(&expression, &Objects).expect_err("the expression must be refused").to_string()
    };
    assert_eq!(shown(16_384).lines().count(), 3);
    assert_eq!(shown(16_385).lines().count(), 1);
}

/// cel-go fails with an index out of range here.
#[test]
fn accepts_optional_elements_of_type_dyn() {
    assert!(ENVIRONMENT.compile("[?dy, dyn(1)]", &Objects).is_ok());
    assert!(ENVIRONMENT.compile("{?'a': dy}", &Objects).is_ok());
}

#[test]
fn names_the_line_of_a_declaration_that_cannot_be_read() {
    let mut environment = Environment::empty();
    let error =
        environment.declare("f: (int) -> int\n\n# comment\ng: (list) -> \n").expect_err("the line is not valid");
    assert_eq!(error.line, 4);
    assert!(environment.overloads("f").is_none(), "nothing is added");
    for wrong in [
        "f",
        "f: int -> int",
        "f: (int) int",
        "f: int.int -> int",
        "f: (list(int)) -> int)",
        "f: (wrapper(list(int))) -> int",
    ] {
        assert!(environment.declare(wrong).is_err(), "{wrong}");
    }
    let deep = format!("f: ({}int{}) -> int", "list(".repeat(50_000), ")".repeat(50_000));
    assert!(environment.declare(&deep).is_err());
}

proptest! {
    #[test]
    fn never_panics(source in any::<String>()) {
        drop(ENVIRONMENT.compile(&source, &Objects).map_err(|issues| issues.to_string()));
    }

    #[test]
    fn never_panics_on_changed_expressions(row in 0usize..10_000, at in 0usize..100, put in "[-!?.:,(){}\\[\\]'\"\\\\a1% ]{0,3}") {
        let rows = &*CORPUS;
        let mut chars: Vec<char> = rows[row % rows.len()].expression.chars().collect();
        let at = at % (chars.len() + 1);
        let end = (at + 1).min(chars.len());
        chars.splice(at..end, put.chars());
        let source = chars.into_iter().collect::<String>();
        drop(ENVIRONMENT.compile(&source, &Objects).map_err(|issues| issues.to_string()));
    }
}
