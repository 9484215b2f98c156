//! The checker beside cel-go's in the environment of Kubernetes 1.37, and its bounds.

use kcm_cel::{Environment, Type, TypeProvider, kubernetes};

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

fn environment() -> Environment {
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
}

struct Row {
    expression: String,
    expected: Result<String, String>,
}

fn corpus() -> Vec<Row> {
    let rows = include_str!("data/check.jsonl").lines().map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).expect("the corpus must be well formed");
        let text = |key: &str| row[key].as_str().map(str::to_owned);
        let expected = text("type").ok_or_else(|| text("issues").expect("the corpus must be well formed"));
        Row { expression: text("expression").expect("the corpus must be well formed"), expected }
    });
    rows.collect()
}

/// Returns the part of a text that is the same for both: everything, or the position of the first syntax error.
fn comparable(text: &str) -> &str {
    match text.split_once(": Syntax error: ") {
        Some((position, _)) if !position.contains('\n') => position,
        _ => text,
    }
}

#[test]
fn checks_as_cel_go_does() {
    let environment = environment();
    let mut wrong = Vec::new();
    for Row { expression, expected } in corpus() {
        let found = environment.compile(&expression, &Objects);
        let found = found.map(|checked| checked.result_type().to_string()).map_err(|issues| issues.to_string());
        let same = match (&expected, &found) {
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
