//! A plain type as a table of its fields.

use rnet::{Field, FieldType, PlainType};

use crate::context::Context;
use crate::failure::Outcome;

/// One field per line: offset from the start of the message, name, type.
pub fn print(context: &mut Context, plain: &PlainType) -> Outcome {
    fields(context, &plain.fields, 0, 1)
}

fn fields(context: &mut Context, list: &[Field], base: usize, depth: usize) -> Outcome {
    for field in list.iter().filter(|f| !f.is_padding()) {
        let (at, indent) = (base + field.offset, "  ".repeat(depth));
        context.line(format_args!("{indent}{at:>4}  {}: {}", field.name, field.ty))?;
        let mut inner = &field.ty;
        while let FieldType::Array { of, .. } = inner {
            inner = of;
        }
        if let FieldType::Struct(plain) = inner {
            fields(context, &plain.fields, at, depth + 1)?;
        }
    }
    Ok(())
}
