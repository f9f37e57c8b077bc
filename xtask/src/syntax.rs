//! Determines which items of a Rust file exist in tests only.

use syn::{Attribute, ImplItem, Item, Meta, Token};

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of an item of an `impl` block.
pub fn impl_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item exists in tests only: `#[cfg(test)]`, alone or within `all(…)`.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        }
        meta => meta.path().is_ident("test"),
    })
}

fn needs_test(condition: &Meta) -> bool {
    let parts = syn::punctuated::Punctuated::<Meta, Token![,]>::parse_terminated;
    match condition {
        Meta::List(list) if list.path.is_ident("all") => {
            list.parse_args_with(parts).is_ok_and(|parts| parts.iter().any(needs_test))
        }
        condition => condition.path().is_ident("test"),
    }
}
