//! Constant defaults, as `data/defaults.txt` has them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::{computed, items};
use crate::json::{at, map_of, set, text};

/// Rows of a kind of object, or of a part that objects have in common.
type Blocks = BTreeMap<&'static str, Vec<Row>>;

static BLOCKS: LazyLock<Blocks> = LazyLock::new(|| parse(include_str!("../../data/defaults.txt")));

#[derive(Debug, Clone)]
struct Row {
    steps: Vec<Step>,
    action: Action,
}

/// A step from an object to the part that a row is about.
#[derive(Debug, Clone)]
enum Step {
    /// The map of a field, created if it is absent.
    Field(&'static str),
    /// The map of a field; the row does nothing if it is absent.
    Present(&'static str),
    /// The items of a list.
    Items(&'static str),
    /// The row does nothing unless a field is one of these strings.
    Where(&'static str, Vec<&'static str>),
}

#[derive(Debug, Clone)]
enum Action {
    SetAbsent(&'static str, Value),
    /// The typed API does not distinguish empty from absent.
    SetEmpty(&'static str, Value),
    Apply(&'static str),
}

/// Fills in the defaults of a block: those that are computed, then those that are constant.
pub(super) fn apply(block: &str, object: &mut Value) {
    if let Some(compute) = computed(block) {
        compute(object);
    }
    for row in BLOCKS.get(block).into_iter().flatten() {
        row.apply(&row.steps, object);
    }
}

impl Row {
    fn apply(&self, steps: &[Step], object: &mut Value) {
        let Some((step, rest)) = steps.split_first() else { return self.action.apply(object) };
        match step {
            Step::Field(field) => {
                let value = map_of(object).entry(*field).or_insert(Value::Null);
                map_of(value);
                self.apply(rest, value);
            }
            Step::Present(field) => {
                if let Some(value) = object.get_mut(*field).filter(|value| value.is_object()) {
                    self.apply(rest, value);
                }
            }
            Step::Items(field) => items(object, &[field]).for_each(|item| self.apply(rest, item)),
            Step::Where(field, values) => {
                if text(object, &[field]).is_some_and(|given| values.contains(&given)) {
                    self.apply(rest, object);
                }
            }
        }
    }
}

impl Action {
    fn apply(&self, object: &mut Value) {
        match self {
            Self::SetAbsent(field, value) => {
                if at(object, &[field]).is_none() {
                    set(object, &[field], Some(value.clone()));
                }
            }
            Self::SetEmpty(field, value) => {
                let is_empty =
                    |given: &Value| *given == "" || *given == 0 || given.as_array().is_some_and(Vec::is_empty);
                if at(object, &[field]).is_none_or(is_empty) {
                    set(object, &[field], Some(value.clone()));
                }
            }
            Self::Apply(block) => apply(block, object),
        }
    }
}

/// Reads the file. It is part of the program, so that an error in it is a programming error, which the tests find.
fn parse(file: &'static str) -> Blocks {
    let mut blocks = Blocks::new();
    let mut names: Vec<&'static str> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => names = line.split(' ').collect(),
            Some(line) => {
                let row = row(line).unwrap_or_else(|| panic!("not a row: {line}"));
                for name in &names {
                    blocks.entry(*name).or_default().push(row.clone());
                }
            }
        }
    }
    blocks
}

fn row(line: &'static str) -> Option<Row> {
    let (path, action) = line.split_once(' ')?;
    if let Some(block) = action.strip_prefix('@') {
        return Some(Row { steps: path.split('.').flat_map(steps).collect(), action: Action::Apply(block) });
    }
    let (path, field) = path.rsplit_once('.').unwrap_or(("", path));
    let (sign, value) = action.split_once(' ')?;
    let value = serde_json::from_str(value).ok()?;
    let action = match sign {
        "=" => Action::SetAbsent(field, value),
        "~" => Action::SetEmpty(field, value),
        _ => return None,
    };
    Some(Row { steps: path.split('.').filter(|step| !step.is_empty()).flat_map(steps).collect(), action })
}

/// Reads a step of a path: `field`, `field?` or `field[]`, each with `(name=A,B)` behind it, which implies `?`.
fn steps(step: &'static str) -> Vec<Step> {
    let (name, condition) = step.split_once('(').map_or((step, None), |(name, rest)| (name, Some(rest)));
    let first = match (name.strip_suffix("[]"), name.strip_suffix('?')) {
        (Some(list), _) => Step::Items(list),
        (None, Some(field)) => Step::Present(field),
        (None, None) if condition.is_some() => Step::Present(name),
        (None, None) => Step::Field(name),
    };
    let condition = condition.and_then(|condition| condition.trim_end_matches(')').split_once('='));
    let condition = condition.map(|(field, values)| Step::Where(field, values.split(',').collect()));
    std::iter::once(first).chain(condition).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_whole_file_is_read_and_what_it_names_exists() {
        let kinds = crate::kinds::Kinds::built_in(true);
        let served: Vec<String> = kinds.iter().map(|kind| kind.resource.to_string()).collect();
        let applied: Vec<&str> = BLOCKS
            .values()
            .flatten()
            .filter_map(|row| match row.action {
                Action::Apply(block) => Some(block),
                Action::SetAbsent(..) | Action::SetEmpty(..) => None,
            })
            .collect();
        assert!(applied.iter().all(|block| BLOCKS.contains_key(block)), "{applied:?}");
        for block in BLOCKS.keys() {
            assert!(applied.contains(block) || served.iter().any(|served| served == block), "{block}");
        }
    }

    #[test]
    fn rows_make_fields_visit_items_and_heed_conditions() {
        let given =
            json!({ "a": { "kind": "A" }, "b": { "kind": "C" }, "list": [{ "n": 0 }, { "n": 2, "kind": "B" }] });
        for (line, pointer, expected) in [
            ("x.y.z = 1", "/x/y/z", Some(json!(1))),
            ("x?.y = 1", "/x", None),
            ("a?.y = {}", "/a/y", Some(json!({}))),
            ("a.kind = \"D\"", "/a/kind", Some(json!("A"))),
            ("a(kind=A,B).y.z = 1", "/a/y/z", Some(json!(1))),
            ("b(kind=A,B).y.z = 1", "/b/y", None),
            ("list[].n ~ 5", "/list/0/n", Some(json!(5))),
            ("list[].n ~ 5", "/list/1/n", Some(json!(2))),
            ("list[].n = 5", "/list/0/n", Some(json!(0))),
            ("list[](kind=B).m = 1", "/list/0/m", None),
            ("list[](kind=B).m = 1", "/list/1/m", Some(json!(1))),
        ] {
            let (row, mut object) = (row(line).expect("the line is a row"), given.clone());
            row.apply(&row.steps, &mut object);
            assert_eq!(object.pointer(pointer), expected.as_ref(), "{line}");
        }
    }
}
