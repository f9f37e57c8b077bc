//! The attributes on the struct: `#[repr(…)]` and `#[plain(…)]`.

use syn::{DeriveInput, Error, Ident, LitStr, Path, Result, parse_quote};

/// The parsed attributes.
pub(crate) struct Attrs {
    /// Path of the traits.
    pub(crate) krate: Path,
    /// The name that publisher and subscriber compare.
    pub(crate) name: String,
    /// Whether data follows: a header instead of a complete message.
    pub(crate) tail: bool,
}

impl Attrs {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let mut attrs =
            Self { krate: parse_quote!(::rnet), name: plain_ident(&input.ident), tail: false };
        let mut repr_c = false;
        for attr in &input.attrs {
            if attr.path().is_ident("repr") {
                attr.parse_nested_meta(|meta| {
                    repr_c |= meta.path.is_ident("C");
                    // `align(8)`, `packed(4)`: the assertions check their effect on the layout.
                    if meta.input.peek(syn::token::Paren) {
                        let content;
                        syn::parenthesized!(content in meta.input);
                        content.parse::<proc_macro2::TokenStream>()?;
                    }
                    Ok(())
                })?;
            } else if attr.path().is_ident("plain") {
                attr.parse_nested_meta(|meta| {
                    if meta.path.is_ident("crate") {
                        attrs.krate = meta.value()?.parse::<LitStr>()?.parse()?;
                    } else if meta.path.is_ident("name") {
                        attrs.name = checked_name(&meta.value()?.parse()?)?;
                    } else if meta.path.is_ident("tail") {
                        attrs.tail = true;
                    } else {
                        return Err(
                            meta.error("expected `name = \"…\"`, `tail` or `crate = \"…\"`")
                        );
                    }
                    Ok(())
                })?;
            }
        }
        if !repr_c {
            let why = "a plain type needs `#[repr(C)]`: without it the compiler may order the fields differently \
                       in each program";
            return Err(Error::new_spanned(&input.ident, why));
        }
        Ok(attrs)
    }
}

/// The identifier without the `r#` of a raw one.
pub(crate) fn plain_ident(ident: &Ident) -> String {
    let ident = ident.to_string();
    ident.strip_prefix("r#").map(str::to_owned).unwrap_or(ident)
}

/// The rules of `rnet_core::PlainType::validate`, repeated here so that they fail at compile time.
fn checked_name(name: &LitStr) -> Result<String> {
    let value = name.value();
    let forbidden = |c: char| c.is_control() || ['[', ']', '`'].contains(&c);
    if value.is_empty() || value.len() > 255 || value.contains(forbidden) {
        let why = "the name of a plain type must have 1 to 255 bytes, without control characters, '[', ']' and '`'";
        return Err(Error::new_spanned(name, why));
    }
    Ok(value)
}
