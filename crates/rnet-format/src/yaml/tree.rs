//! YAML text as a tree with lines, within limits.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::{Problem, Scalar};

/// Longest text, in bytes. A thousand parameters with all their words need a tenth of it.
pub const MAX_YAML_LEN_BYTES: usize = 1 << 20;
/// Deepest nesting.
const MAX_DEPTH: usize = 16;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The line, from 1.
    pub line: usize,
    /// What it is.
    pub value: TreeValue,
}

/// A scalar, a list or a map.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeValue {
    /// A scalar as it is written.
    Scalar(Scalar),
    /// A list.
    List(Vec<Tree>),
    /// In order; no name twice.
    Map(Vec<(Key, Tree)>),
}

/// A name in a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
}

/// A map or list that is being read.
struct OpenCollection {
    tree: Tree,
    /// Of a map: the name whose value comes next.
    key: Option<Key>,
    /// Of a map: its names, with their lines.
    names: HashMap<String, usize>,
}

/// Reads a text; `None` if there is nothing in it.
pub fn read(text: &str) -> Result<Option<Tree>, Problem> {
    if text.len() > MAX_YAML_LEN_BYTES {
        let len = text.len();
        return Err(Problem::new(
            1,
            format!("{len} bytes exceed the limit of {MAX_YAML_LEN_BYTES} bytes"),
        ));
    }
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut root: Option<Tree> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|e| Problem::new(e.marker().line(), format!("invalid YAML: {}", e.info())))?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(_) if root.is_some() => {
                return Err(Problem::new(
                    line,
                    "a second document starts here; use one file per document",
                ));
            }
            Event::Alias(_) => {
                return Err(Problem::new(
                    line,
                    "aliases (*name) are not supported; write the value itself",
                ));
            }
            Event::SequenceStart(_, tag) => {
                open_collection(&mut open, line, TreeValue::List(Vec::new()), tag)?
            }
            Event::MappingStart(_, tag) => {
                open_collection(&mut open, line, TreeValue::Map(Vec::new()), tag)?
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(done) = open.pop() {
                    insert(&mut open, &mut root, done.tree)?;
                }
            }
            Event::Scalar(text, style, _, tag) => {
                let scalar = Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                    tag: type_tag(tag, line)?,
                };
                insert(&mut open, &mut root, Tree { line, value: TreeValue::Scalar(scalar) })?;
            }
            _ => {}
        }
    }
    Ok(root)
}

fn open_collection(
    open: &mut Vec<OpenCollection>,
    line: usize,
    value: TreeValue,
    tag: Option<Cow<'_, Tag>>,
) -> Result<(), Problem> {
    let own = if matches!(value, TreeValue::List(_)) { "seq" } else { "map" };
    if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema() || tag.suffix != own) {
        return Err(Problem::new(line, format!("unknown tag {tag}")));
    }
    if open.len() >= MAX_DEPTH {
        return Err(Problem::new(line, format!("nested more than {MAX_DEPTH} levels deep")));
    }
    if let Some(OpenCollection { tree: Tree { value: TreeValue::Map(_), .. }, key: None, .. }) =
        open.last()
    {
        return Err(Problem::new(line, "expected a name, not a list or map"));
    }
    open.push(OpenCollection { tree: Tree { line, value }, key: None, names: HashMap::new() });
    Ok(())
}

/// Puts a finished value where it belongs.
fn insert(open: &mut [OpenCollection], root: &mut Option<Tree>, tree: Tree) -> Result<(), Problem> {
    let Some(OpenCollection { tree: outer, key, names }) = open.last_mut() else {
        *root = Some(tree);
        return Ok(());
    };
    match (&mut outer.value, key.take()) {
        (TreeValue::Map(pairs), Some(name)) => pairs.push((name, tree)),
        (TreeValue::Map(_), None) => {
            let TreeValue::Scalar(scalar) = tree.value else { return Ok(()) };
            if let Some(first) = names.insert(scalar.text.clone(), tree.line) {
                let text = scalar.text;
                let why = format!("duplicate name {text:?}; first in line {first}");
                return Err(Problem::new(tree.line, why));
            }
            *key = Some(Key { text: scalar.text, line: tree.line });
        }
        (TreeValue::List(items), _) => items.push(tree),
        (TreeValue::Scalar(_), _) => {}
    }
    Ok(())
}

fn type_tag(tag: Option<Cow<'_, Tag>>, line: usize) -> Result<Option<String>, Problem> {
    match tag {
        None => Ok(None),
        // `!` alone: this is text.
        Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(Some("str".to_owned())),
        Some(tag) if tag.is_yaml_core_schema() => Ok(Some(tag.suffix.clone())),
        Some(tag) => Err(Problem::new(line, format!("unknown tag {tag}"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn why(text: &str) -> (usize, String) {
        let problem = read(text).unwrap_err();
        (problem.line, problem.why)
    }

    #[test]
    fn lines_are_kept() {
        let tree = read("# one\n/arm:\n  gain: 1.0\n  legs: [a,\n    'b']\n").unwrap().unwrap();
        let TreeValue::Map(nodes) = tree.value else { panic!() };
        assert_eq!((nodes[0].0.text.as_str(), nodes[0].0.line), ("/arm", 2));
        let TreeValue::Map(params) = &nodes[0].1.value else { panic!() };
        assert_eq!(params[0].1.line, 3);
        let TreeValue::List(legs) = &params[1].1.value else { panic!() };
        assert_eq!(legs[1].line, 5);
        let TreeValue::Scalar(b) = &legs[1].value else { panic!() };
        assert_eq!((b.text.as_str(), b.plain), ("b", false));
        assert_eq!(read("").unwrap(), None);
        assert!(read("# nothing\n---\n").unwrap().is_some());
    }

    #[test]
    fn what_data_does_not_need_is_refused() {
        assert_eq!(why("/a:\n  x: &x 1\n  y: *x\n").0, 3);
        assert!(why("/a:\n  x: &x 1\n  y: *x\n").1.contains("aliases"));
        assert_eq!(
            why("/a: {x: 1}\n---\n/b: {x: 1}\n").1,
            "a second document starts here; use one file per document"
        );
        assert!(why("/a: !!python/object:os.system [rm]\n").1.ends_with("os.system"));
        assert!(why("/a: !mine 3\n").1.contains("unknown tag !mine"));
        assert!(why("? [1, 2]\n: x\n").1.contains("expected a name"));
        let (line, said) = why("/a:\n  x: 1\n  y: 2\n  x: 3\n");
        assert_eq!(line, 4);
        assert!(said.contains("duplicate name \"x\"; first in line 2"), "{said}");
        assert!(why("/a:\n  x: [1,\n").1.contains("invalid YAML"));
        assert!(why("/a:\n\tx: 1\n").1.contains("invalid YAML"));
    }

    #[test]
    fn bombs_do_not_go_off() {
        // A billion laughs: nine levels of nine references each.
        let mut bomb = "a: &a [lol]\n".to_owned();
        for (name, before) in ('b'..='j').zip('a'..='i') {
            let references = vec![format!("*{before}"); 9].join(", ");
            bomb += &format!("{name}: &{name} [{references}]\n");
        }
        assert_eq!(why(&bomb).0, 2);
        for deep in ["[", "{a: ", "- "] {
            let (_, said) = why(&deep.repeat(200_000));
            // The parser has a limit of its own for brackets, which it looks ahead for.
            assert!(
                said.contains("16 levels") || said.contains("recursion limit"),
                "{deep}: {said}"
            );
        }
        let (_, said) = why(&"a: 1\n".repeat(300_000));
        assert!(said.contains("1500000 bytes"), "{said}");
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_read_or_refused(
            text in "\\PC{0,40}|[-\\[\\]{}:,&*!#|>'\"%@ \na1?]{0,40}|(- |\\? |: |\\n|a|  |\\t|---\\n|\\.\\.\\.\\n|!!str |\\||>){0,20}",
        ) {
            let _ = read(&text);
        }
    }
}
