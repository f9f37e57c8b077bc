//! `#[derive(Plain)]`: a struct whose bytes are its message.
//!
//! The derive implements `rnet::Plain` and `rnet::PlainField`, or `rnet::PlainHeader`. These are `unsafe`
//! traits, so the derive must prove their conditions at compile time:
//!
//! | condition | ensured by |
//! |---|---|
//! | a fixed layout | `#[repr(C)]` is required, generics are rejected |
//! | every bit pattern is a value | every field type implements `PlainField`, otherwise the code does not compile |
//! | no padding | `size_of` of the struct is asserted to be the sum of its fields' |
//! | alignment at most 8 | asserted |
//! | the description is the layout | offsets come from `offset_of!`, sizes and types from the compiler |
//!
//! Known unsupported types (`bool`, `usize`, references, …) are rejected by name first, because "use u8" is
//! more helpful than an unsatisfied trait bound. These checks only improve the errors. Soundness depends on
//! the conditions above, so a type alias for `bool` is rejected too.
#![forbid(unsafe_code)]

mod attrs;
mod fields;

use attrs::Attrs;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Member, Result, Type, parse_macro_input};

/// Implements `rnet::Plain` for a `#[repr(C)]` struct, so that its bytes in memory can be sent as a message.
///
/// ```
/// # use rnet_derive as rnet;
/// #[derive(Clone, Copy, rnet::Plain)]
/// # #[plain(crate = "rnet_core")]
/// #[repr(C)]
/// struct JointState {
///     position_rad: f64,
///     velocity_rad_s: f64,
///     motor: u32,
///     _pad: [u8; 4], // implicit padding is not allowed: the compiler reports it
/// }
/// ```
///
/// Fields may be `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, arrays of these, and other structs that derive
/// `Plain`. Fields whose name starts with `_` are padding: publishers and subscribers do not compare them,
/// and tools do not show them.
///
/// Attributes of the struct: `#[plain(name = "…")]` sets the type name (default: the struct's name; publisher
/// and subscriber must use the same), `#[plain(crate = "path")]` sets the path of the traits (default:
/// `::rnet`). `#[plain(tail)]` makes it a header that is followed by data, `rnet::PlainHeader`, instead of a
/// complete message.
///
/// The compiler checks every field: a wrong type behind an alias, and a nested struct that is not plain or
/// not `Copy`, do not compile either:
///
/// ```compile_fail,E0277
/// # use rnet_derive as rnet;
/// type Flag = bool;
/// #[derive(Clone, Copy, rnet::Plain)]
/// # #[plain(crate = "rnet_core")]
/// #[repr(C)]
/// struct Lamp {
///     on: Flag,
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use rnet_derive as rnet;
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Inner(u32);
/// #[derive(Clone, Copy, rnet::Plain)]
/// # #[plain(crate = "rnet_core")]
/// #[repr(C)]
/// struct Outer {
///     inner: Inner,
/// }
/// ```
///
/// ```compile_fail,E0277
/// # use rnet_derive as rnet;
/// #[derive(rnet::Plain)]
/// # #[plain(crate = "rnet_core")]
/// #[repr(C)]
/// struct NotCopy(u32);
/// ```
#[proc_macro_derive(Plain, attributes(plain))]
pub fn derive_plain(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attrs = Attrs::parse(input)?;
    let fields = struct_fields(input)?;
    let ident = &input.ident;
    let (krate, name) = (&attrs.krate, &attrs.name);

    for field in fields {
        fields::reject_unsupported_type(&field.ty)?;
    }
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let members: Vec<Member> = fields.members().collect();
    let descriptions = members.iter().zip(&types).map(|(member, ty)| {
        let field_name = fields::name_of(member);
        // On the field's own span, so that an unsuitable type is underlined there.
        let field_type = quote_spanned!(ty.span()=> <#ty as #krate::PlainField>::field_type());
        quote! {
            #krate::Field {
                name: ::std::string::String::from(#field_name),
                offset: ::core::mem::offset_of!(#ident, #member),
                ty: #field_type,
            }
        }
    });
    let no_padding = format!(
        "`{ident}` has padding between or after its fields, and padding bytes must not be sent: \
         reorder the fields from large to small, or add an explicit field such as `_pad: [u8; 4]`"
    );
    let small_align =
        format!("`{ident}` is aligned to more than 8 bytes, but messages are aligned to 8");

    let tail = attrs.tail;
    let description = quote! {
        #krate::PlainType {
            name: ::std::string::String::from(#name),
            size: ::core::mem::size_of::<#ident>(),
            align: ::core::mem::align_of::<#ident>(),
            tail: #tail,
            fields: ::std::vec![#(#descriptions),*],
        }
    };
    let implementations = if tail {
        quote! {
            // SAFETY: repr(C) without generics; every field is a PlainField; no padding and a small alignment
            // are asserted above; the description consists of the compiler's own offsets and sizes.
            #[automatically_derived]
            unsafe impl #krate::PlainHeader for #ident {
                fn header_type() -> #krate::PlainType {
                    #description
                }
            }
        }
    } else {
        quote! {
            // SAFETY: repr(C) without generics; every field is a PlainField; no padding and a small alignment
            // are asserted above; the description consists of the compiler's own offsets and sizes.
            #[automatically_derived]
            unsafe impl #krate::Plain for #ident {
                fn plain_type() -> #krate::PlainType {
                    #description
                }
            }

            // SAFETY: as above.
            #[automatically_derived]
            unsafe impl #krate::PlainField for #ident {
                fn field_type() -> #krate::FieldType {
                    #krate::FieldType::Struct(<#ident as #krate::Plain>::plain_type())
                }
            }
        }
    };

    Ok(quote! {
        const _: () = {
            ::core::assert!(::core::mem::size_of::<#ident>() == 0 #(+ ::core::mem::size_of::<#types>())*, #no_padding);
            ::core::assert!(::core::mem::align_of::<#ident>() <= 8, #small_align);
            ::core::assert!(::core::mem::size_of::<#ident>() <= 1 << 30, "a message has at most 1 GiB");
            #(::core::assert!(::core::mem::size_of::<#types>() > 0, "a field of a plain type cannot be empty");)*

            #implementations
        };
    })
}

fn struct_fields(input: &DeriveInput) -> Result<&Fields> {
    if let Some(parameter) = input.generics.params.first() {
        let why = "a plain type has one fixed layout, so it cannot have generic parameters: write one struct per layout";
        return Err(Error::new_spanned(parameter, why));
    }
    if let Some(clause) = &input.generics.where_clause {
        return Err(Error::new_spanned(clause, "a plain type cannot have a where clause"));
    }
    match &input.data {
        Data::Struct(data) => Ok(&data.fields),
        Data::Enum(data) => {
            let why = "an enum is not a plain type, because not every bit pattern is one of its values: \
                       use a struct with an integer field, and constants for its values";
            Err(Error::new_spanned(data.enum_token, why))
        }
        Data::Union(data) => {
            Err(Error::new_spanned(data.union_token, "a union is not a plain type: use a struct"))
        }
    }
}
