//! Fields: their names, and errors with a remedy for unsupported types.

use crate::attrs::plain_ident;
use syn::{Error, Member, Result, Type};

/// The name in the description: `x`, or `0` in a tuple struct.
pub(crate) fn name_of(member: &Member) -> String {
    match member {
        Member::Named(ident) => plain_ident(ident),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// Rejects common unsupported types with a suggestion. For all other types, the trait bound on `PlainField`
/// decides.
pub(crate) fn reject_unsupported_type(ty: &Type) -> Result<()> {
    let why = match ty {
        Type::Array(array) => return reject_unsupported_type(&array.elem),
        Type::Group(group) => return reject_unsupported_type(&group.elem),
        Type::Paren(paren) => return reject_unsupported_type(&paren.elem),
        Type::Reference(_) | Type::Ptr(_) | Type::FnPtr(_) => {
            "an address is meaningless in another process: store the value itself"
        }
        Type::Slice(_) => "a plain type has one fixed size: use an array `[T; N]` and a count",
        Type::Tuple(_) => "a tuple has no fixed layout: use a struct that derives `Plain`",
        Type::Path(path) if path.qself.is_none() => {
            let Some(last) = path.path.segments.last() else { return Ok(()) };
            match last.ident.to_string().as_str() {
                "bool" => {
                    "a plain type cannot hold `bool`, because only two of its 256 bit patterns are valid: use u8"
                }
                "char" => {
                    "a plain type cannot hold `char`, because not every bit pattern is valid: use u32, or [u8; N] for text"
                }
                "usize" => "the size of `usize` is not the same on every machine: use u64 or u32",
                "isize" => "the size of `isize` is not the same on every machine: use i64 or i32",
                "u128" | "i128" => {
                    "128-bit integers are aligned to 16 bytes and not available in C and Python: use two u64"
                }
                "String" => {
                    "a `String` is an address, which is meaningless in another process: use [u8; N] and a length"
                }
                "Vec" | "Box" | "Option" => {
                    "a plain type holds its values directly and has one fixed size: use an array `[T; N]` and a count"
                }
                _ => return Ok(()),
            }
        }
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
}
