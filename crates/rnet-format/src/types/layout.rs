//! A plain type as a table of its fields.

use rnet::msgs::plain::HeaderDescription;
use rnet::{Field, FieldType, PlainType};

/// One field per line: offset from the start of the message, name, type; of a built-in type, what it means.
pub fn layout(plain: &PlainType) -> Vec<String> {
    let mut lines = Vec::new();
    fields(&mut lines, HeaderDescription::find(plain).as_ref(), &plain.fields, ("", 0, 1));
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let line = |(line, meaning): FieldLine| match meaning {
        Some(meaning) => format!("{line:<width$}  // {meaning}"),
        None => line,
    };
    lines.into_iter().map(line).collect()
}

type FieldLine = (String, Option<&'static str>);

/// `within` is the path of the struct, where it starts, and how deep it is.
fn fields(
    lines: &mut Vec<FieldLine>,
    described: Option<&HeaderDescription>,
    list: &[Field],
    within: (&str, usize, usize),
) {
    let (before, base, depth) = within;
    for field in list.iter().filter(|f| !f.is_padding()) {
        let (at, indent) = (base + field.offset, "  ".repeat(depth));
        let path = format!("{before}{}", field.name);
        let meaning = described.and_then(|one| one.field(&path)).map(|doc| doc.meaning);
        lines.push((format!("{indent}{at:>4}  {}: {}", field.name, field.ty), meaning));
        let mut inner = &field.ty;
        while let FieldType::Array { of, .. } = inner {
            inner = of;
        }
        if let FieldType::Struct(plain) = inner {
            fields(lines, described, &plain.fields, (&format!("{path}."), at, depth + 1));
        }
    }
}
