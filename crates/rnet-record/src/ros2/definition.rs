//! Parses `ros2msg` descriptions: the fields of a type, then the types that it uses, each after a line of `=`
//! and a line with its name.

use std::collections::{BTreeMap, BTreeSet};

use rnet::Prim;

/// Maximum length of a description, in bytes: the largest standard message has about 10 KiB.
const MAX_LEN_BYTES: usize = 1 << 20;
/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 32;

/// A number type, by its name in a description.
fn number(name: &str) -> Option<Prim> {
    Some(match name {
        "bool" => Prim::Bool,
        "uint8" | "byte" | "char" => Prim::U8,
        "int8" => Prim::I8,
        "uint16" => Prim::U16,
        "int16" => Prim::I16,
        "uint32" => Prim::U32,
        "int32" => Prim::I32,
        "uint64" => Prim::U64,
        "int64" => Prim::I64,
        "float32" => Prim::F32,
        "float64" => Prim::F64,
        _ => return None,
    })
}

/// The type of a field or of its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    Number(Prim),
    Text,
    /// A message type, by its name `package/Type`.
    Type(String),
}

/// Number of elements of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Single,
    Fixed(u32),
    Sequence,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub base: Base,
    pub arity: Arity,
}

/// A type and all types that it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its name, `package/Type`.
    pub name: String,
    pub types: BTreeMap<String, Vec<Field>>,
}

/// Shortens `package/msg/Type` to `package/Type`. Types of services and actions keep their longer names.
fn short_name(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let is_word = |word: &&str| {
        let mut chars = word.chars();
        chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match parts[..] {
        [package, ty] | [package, "msg", ty] if [package, ty].iter().all(is_word) => {
            Some(format!("{package}/{ty}"))
        }
        [package, "srv" | "action", ty] if [package, ty].iter().all(is_word) => {
            Some(name.to_owned())
        }
        _ => None,
    }
}

impl Definition {
    /// Parses a description. Errors are text.
    pub fn parse(name: &str, text: &str) -> Result<Definition, String> {
        if text.len() > MAX_LEN_BYTES {
            return Err(format!("its description has more than {MAX_LEN_BYTES} bytes"));
        }
        let name =
            short_name(name).ok_or_else(|| format!("{name:?} is not a name of a ROS 2 type"))?;
        let mut types = BTreeMap::new();
        let (mut of, mut fields) = (name.clone(), Vec::new());
        let mut is_head = false;
        for line in text.lines() {
            if line.len() >= 3 && line.bytes().all(|byte| byte == b'=') {
                types.entry(std::mem::take(&mut of)).or_insert(std::mem::take(&mut fields));
                is_head = true;
            } else if let Some(next) = line.strip_prefix("MSG:").filter(|_| is_head) {
                let next = next.trim();
                of = short_name(next)
                    .ok_or_else(|| format!("{next:?} is not a name of a ROS 2 type"))?;
                is_head = false;
            } else if let Some(field) = field(line, &of)? {
                fields.push(field);
            }
        }
        types.entry(of).or_insert(fields);
        for name in ["Time", "Duration"] {
            types.entry(format!("builtin_interfaces/{name}")).or_insert_with(time_fields);
        }
        let mut definition = Definition { name, types };
        definition.resolve_nested_types();
        definition.check(&definition.name, &mut BTreeMap::new(), 0)?;
        Ok(definition)
    }

    /// Checks that all used types are defined, and that none contains itself. Returns the nesting depth below
    /// this type, and stores it in `heights`, because a type may be used again at a deeper level.
    fn check(
        &self,
        of: &str,
        heights: &mut BTreeMap<String, usize>,
        depth: usize,
    ) -> Result<usize, String> {
        let mut height = heights.get(of).copied().unwrap_or(0);
        if depth + height > MAX_DEPTH {
            return Err(format!(
                "{of} is nested more than {MAX_DEPTH} levels deep, or contains itself"
            ));
        }
        if heights.contains_key(of) {
            return Ok(height);
        }
        let fields =
            self.types.get(of).ok_or_else(|| format!("it uses {of}, but does not define it"))?;
        for field in fields {
            if let Base::Type(inner) = &field.base {
                height = height.max(1 + self.check(inner, heights, depth + 1)?);
            }
        }
        heights.insert(of.to_owned(), height);
        Ok(height)
    }

    /// A type of an action or service may use another type of it without its prefix.
    fn resolve_nested_types(&mut self) {
        let there: BTreeSet<String> = self.types.keys().cloned().collect();
        for field in self.types.values_mut().flatten() {
            let Base::Type(of) = &mut field.base else { continue };
            if there.contains(of) {
                continue;
            }
            let in_folder = |folder: &str| of.replacen('/', &format!("/{folder}/"), 1);
            let mut names = ["srv", "action"].map(in_folder).into_iter();
            if let Some(found) = names.find(|name| there.contains(name)) {
                *of = found;
            }
        }
    }

    /// Whether the type has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields(&self.name).is_empty()
    }

    /// The fields of a type.
    pub fn fields(&self, of: &str) -> &[Field] {
        self.types.get(of).map_or(&[], Vec::as_slice)
    }
}

fn time_fields() -> Vec<Field> {
    let field = |(name, number): (&str, Prim)| Field {
        name: name.to_owned(),
        base: Base::Number(number),
        arity: Arity::Single,
    };
    [("sec", Prim::I32), ("nanosec", Prim::U32)].map(field).into()
}

/// Parses a line: a field, or `None` for a constant or an empty line.
fn field(line: &str, of: &str) -> Result<Option<Field>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let Some((ty, rest)) = line.split_once(char::is_whitespace) else {
        return if line.is_empty() { Ok(None) } else { Err(format!("{line:?} is not a field")) };
    };
    let rest = rest.trim();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (name, behind) = rest.split_at(end);
    if behind.trim_start().starts_with('=') {
        return Ok(None);
    }
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("{line:?} is not a field"));
    }
    let (ty, arity) = match ty.split_once('[') {
        None => (ty, Arity::Single),
        Some((ty, "]")) => (ty, Arity::Sequence),
        Some((ty, bound)) => {
            let bound =
                bound.strip_suffix(']').ok_or_else(|| format!("{line:?} is not a field"))?;
            match bound.strip_prefix("<=") {
                Some(_) => (ty, Arity::Sequence),
                // ROS 2 has no arrays of length 0, and elements without bytes could be repeated any number of
                // times.
                None => match bound.parse() {
                    Ok(len) if len > 0 => (ty, Arity::Fixed(len)),
                    _ => return Err(format!("{bound:?} is not a length")),
                },
            }
        }
    };
    // ROS 2 implementations encode wide strings in CDR differently.
    if ty.split("<=").next() == Some("wstring") {
        return Err(format!(
            "{name} of {of} is a wstring, which ROS 2 implementations encode differently; use string"
        ));
    }
    let base = base(ty, of).ok_or_else(|| format!("unknown type {ty:?}"))?;
    Ok(Some(Field { name: name.to_owned(), base, arity }))
}

fn base(ty: &str, of: &str) -> Option<Base> {
    // The bound of a string matters only to writers.
    if ty.split("<=").next() == Some("string") {
        return Some(Base::Text);
    }
    if let Some(number) = number(ty) {
        return Some(Base::Number(number));
    }
    let package = of.split('/').next().unwrap_or_default();
    let named = match ty {
        "time" => "builtin_interfaces/Time".to_owned(),
        "duration" => "builtin_interfaces/Duration".to_owned(),
        "Header" => "std_msgs/Header".to_owned(),
        _ if ty.contains('/') => ty.to_owned(),
        _ => format!("{package}/{ty}"),
    };
    short_name(&named).map(Base::Type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_descriptions() {
        let text = "# an image\nuint8 A=1\nstring NAME = \"a b\" # x\nstd_msgs/msg/Header header\nPoint[] points\n\
                    float64[9] k\nstring<=5[<=3] names\nint32 n 3\n================================\n\
                    MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n===\nMSG: a/Point\nfloat32 x";
        let read = Definition::parse("a/msg/B", text).unwrap();
        let names: Vec<&str> = read.fields("a/B").iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["header", "points", "k", "names", "n"]);
        assert_eq!(read.fields("a/B")[1].base, Base::Type("a/Point".into()));
        assert_eq!(read.fields("a/B")[2].arity, Arity::Fixed(9));
        assert_eq!(read.fields("std_msgs/Header").len(), 2);
    }

    #[test]
    fn rejects_invalid_descriptions() {
        for (text, why) in [
            ("a/B b", "contains itself"),
            ("C c", "does not define it"),
            ("wstring w", "w of a/B is a wstring"),
            ("wstring<=5[] names", "names of a/B is a wstring"),
            ("int32[x] a", "not a length"),
            ("int32[0] a", "not a length"),
            ("int32[ a", "is not a field"),
            ("int32", "is not a field"),
            ("int32 1a", "is not a field"),
            ("a/b/c/d x", "unknown type"),
            ("===\nMSG: x", "not a name"),
        ] {
            let error = Definition::parse("a/B", text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert!(Definition::parse("B", "").is_err());
    }

    /// Types `T1` to `Tn`, each of which contains the next.
    fn chain(len: usize) -> String {
        let types = (1..len).map(|n| format!("===\nMSG: a/T{n}\nT{} t\n", n + 1));
        types.collect::<String>() + &format!("===\nMSG: a/T{len}\nuint8 x\n")
    }

    #[test]
    fn limits_nesting_depth_in_any_order_of_fields() {
        let deepest_first = |len: usize| {
            let fields: String = (1..=len).rev().map(|n| format!("T{n} t{n}\n")).collect();
            fields + &chain(len)
        };
        Definition::parse("a/B", &deepest_first(MAX_DEPTH)).unwrap();
        for text in [deepest_first(MAX_DEPTH + 1), "T1 t\n".to_owned() + &chain(MAX_DEPTH + 1)] {
            let error = Definition::parse("a/B", &text).unwrap_err();
            assert!(error.contains("more than 32 levels"), "{error}");
        }
    }
}
