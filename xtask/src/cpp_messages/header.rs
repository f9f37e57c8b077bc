//! The header of one `.proto` file.

use std::fmt::Write;

use rnet_schema::prost_reflect::{
    EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, Syntax,
};

use super::{Comments, MARK, messages_of, names};

/// Longest line of a comment, in columns.
const COLUMNS: usize = 110;
const INDENT: &str = "    ";

/// The text of the header.
pub fn header(file: &FileDescriptor, comments: &Comments) -> Result<String, String> {
    let package = file.package_name();
    if file.syntax() != Syntax::Proto3 || file.enums().len() > 0 {
        return Err(format!("{}: only messages of proto3, with enums within", file.name()));
    }
    let mut includes = vec!["rnet/detail/wire.hpp".to_owned()];
    for import in file.dependencies() {
        includes.push(match import.name().starts_with("google/protobuf/") {
            true => "rnet/msgs/time.hpp".to_owned(),
            false => names::include_path(import.name()),
        });
    }
    includes.sort();
    includes.dedup();
    let mut out = format!("// Written from {} {MARK}\n#pragma once\n\n", file.name());
    includes.iter().for_each(|path| out += &format!("#include <{path}>\n"));

    // The classes of protoc for rnet.msgs are in the same namespace, and may be in the same program.
    let namespace = names::namespace(package)?;
    let inline = if package == "rnet.msgs" { " { inline namespace structs" } else { "" };
    let _ = writeln!(out, "\nnamespace {namespace}{inline} {{\n");
    for message in file.messages() {
        write_struct(&mut out, &message, comments)?;
    }
    let _ =
        writeln!(out, "}}{}  // namespace {namespace}", if inline.is_empty() { "" } else { "}" });
    let is_also_ours = |message: &MessageDescriptor| {
        let ours = format!("rnet.msgs.{}", message.name());
        // The one in plain.hpp, which is written by hand.
        ours == "rnet.msgs.PointCloud" || file.parent_pool().get_message_by_name(&ours).is_some()
    };
    for message in file.messages().filter(|m| package == "foxglove" && !is_also_ours(m)) {
        let _ = write!(out, "\nnamespace rnet::msgs {{\nusing foxglove::{};\n}}\n", message.name());
    }
    out += "\nnamespace rnet::detail {\n\n";
    for message in messages_of(file) {
        write_fields(&mut out, &message)?;
    }
    Ok(out + "}  // namespace rnet::detail\n")
}

/// A struct, after the types that are declared in it.
fn write_struct(
    out: &mut String,
    message: &MessageDescriptor,
    comments: &Comments,
) -> Result<(), String> {
    if contains(message, message.full_name(), &mut Vec::new()) {
        return Err(format!("{} contains itself, which a struct cannot", message.full_name()));
    }
    let flat = |name: &str| names::flat(message.package_name(), name);
    let mut aliases = Vec::new();
    for nested in message.child_enums() {
        write_enum(out, &nested, &flat(nested.full_name()), comments);
        aliases.push((nested.name().to_owned(), flat(nested.full_name())));
    }
    for nested in message.child_messages() {
        write_struct(out, &nested, comments)?;
        aliases.push((nested.name().to_owned(), flat(nested.full_name())));
    }
    write_comment(out, comments.get(message.full_name()), "");
    let _ = writeln!(out, "struct {} {{", flat(message.full_name()));
    for (alias, name) in &aliases {
        let _ = writeln!(out, "{INDENT}using {alias} = {name};");
    }
    if !aliases.is_empty() {
        out.push('\n');
    }
    // In the order of the file, which is that of importance.
    for field in &message.descriptor_proto().field {
        let Some(field) = message.get_field_by_name(field.name()) else { continue };
        write_comment(out, comments.get(field.full_name()), INDENT);
        let _ = writeln!(out, "{INDENT}{};", member(&field)?);
    }
    *out += "};\n\n";
    Ok(())
}

/// Whether a message has a field, at any depth, of the message with this name.
fn contains(message: &MessageDescriptor, name: &str, seen: &mut Vec<String>) -> bool {
    let mut fields = message.fields();
    fields.any(|field| match field.kind() {
        Kind::Message(inner) if seen.iter().any(|known| known == inner.full_name()) => false,
        Kind::Message(inner) => {
            seen.push(inner.full_name().to_owned());
            inner.full_name() == name || contains(&inner, name, seen)
        }
        _ => false,
    })
}

fn write_enum(out: &mut String, of: &EnumDescriptor, name: &str, comments: &Comments) {
    write_comment(out, comments.get(of.full_name()), "");
    let _ = writeln!(out, "enum class {name} : std::int32_t {{");
    for (number, full, name) in names::values(of) {
        write_comment(out, comments.get(&format!("{}.{full}", of.full_name())), INDENT);
        let _ = writeln!(out, "{INDENT}{name} = {number},");
    }
    *out += "};\n\n";
}

/// The declaration of a field.
fn member(field: &FieldDescriptor) -> Result<String, String> {
    let unsupported =
        |what: &str| Err(format!("{}: {what} has no form in C++ yet", field.full_name()));
    if field.is_map() || field.is_group() {
        return unsupported("a map or group");
    }
    if field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic()) {
        return unsupported("a oneof");
    }
    let of = match field.kind() {
        Kind::Double => "double".to_owned(),
        Kind::Float => "float".to_owned(),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "std::int32_t".to_owned(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "std::int64_t".to_owned(),
        Kind::Uint32 | Kind::Fixed32 => "std::uint32_t".to_owned(),
        Kind::Uint64 | Kind::Fixed64 => "std::uint64_t".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::String => "std::string".to_owned(),
        Kind::Bytes => "std::vector<std::uint8_t>".to_owned(),
        Kind::Message(it) => names::type_in(field, it.package_name(), it.full_name())?,
        Kind::Enum(it) => names::type_in(field, it.package_name(), it.full_name())?,
    };
    let is_packable = !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    if field.is_list() && is_packable && !field.is_packed() {
        return unsupported("a list that is not packed");
    }
    let name = names::member(field.name());
    Ok(match field.kind() {
        _ if field.is_list() => format!("std::vector<{of}> {name}{{}}"),
        _ if field.supports_presence() => format!("std::optional<{of}> {name}{{}}"),
        Kind::Bool => format!("{of} {name} = false"),
        Kind::String | Kind::Bytes | Kind::Enum(_) => format!("{of} {name}{{}}"),
        _ => format!("{of} {name} = 0"),
    })
}

/// The list of fields, from the last number to the first: messages are encoded from their end.
fn write_fields(out: &mut String, message: &MessageDescriptor) -> Result<(), String> {
    let of = names::full_type(message)?;
    let of = of.strip_prefix("rnet::").unwrap_or(&of);
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.number()));
    let _ = writeln!(out, "template <>\nstruct Fields<{of}> {{");
    let name = message.full_name();
    let _ = writeln!(out, "{INDENT}static constexpr const char* name = \"{name}\";");
    let _ = writeln!(out, "{INDENT}template <class V>");
    if fields.is_empty() {
        let _ = writeln!(out, "{INDENT}static void visit(V&&) {{}}\n}};\n");
        return Ok(());
    }
    let _ = writeln!(out, "{INDENT}static void visit(V&& visit) {{");
    let _ = writeln!(out, "{INDENT}{INDENT}using M = {of};");
    for field in fields {
        let encoding = match field.kind() {
            Kind::Fixed32 | Kind::Fixed64 | Kind::Sfixed32 | Kind::Sfixed64 => ", Wire::fixed",
            Kind::Sint32 | Kind::Sint64 => ", Wire::zigzag",
            _ => "",
        };
        let (number, member) = (field.number(), names::member(field.name()));
        let _ = writeln!(out, "{INDENT}{INDENT}visit(Field<{number}{encoding}>(), &M::{member});");
    }
    let _ = writeln!(out, "{INDENT}}}\n}};\n");
    Ok(())
}

/// A comment with lines of at most [`COLUMNS`].
fn write_comment(out: &mut String, comment: Option<&String>, indent: &str) {
    let Some(comment) = comment else { return };
    let start = format!("{indent}///");
    let mut line = start.clone();
    for word in comment.split_whitespace() {
        if line.len() > start.len() && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(out, "{line}");
            line.clone_from(&start);
        }
        line.push(' ');
        line += word;
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rnet_schema::compile_text;
    use rnet_schema::prost_reflect::DescriptorPool;

    fn header_of(body: &str) -> Result<String, String> {
        let text = format!("syntax = \"proto3\";\npackage rnet.msgs;\nmessage A {{\n{body}\n}}\n");
        let compiled = compile_text("rnet/msgs/A.proto", &text).expect("valid");
        let pool = DescriptorPool::decode(&*compiled.descriptor_set()).expect("valid");
        let file = pool.get_file_by_name("rnet/msgs/A.proto").expect("compiled");
        let comments = [("rnet.msgs.A.x".to_owned(), "Speed.\nUnit: m/s".to_owned())];
        header(&file, &comments.into_iter().collect())
    }

    #[test]
    fn fields_have_the_types_and_encodings_of_protobuf() {
        let text = header_of(
            "enum Kind { KIND_OFF = 0; KIND_DEFAULT = 1; }\nmessage B {}\noptional double x = 1;\n\
             sint32 y = 2; repeated Kind kinds = 4; B b = 3; bytes new = 5;",
        )
        .expect("supported");
        for line in [
            "\nenum class A_Kind : std::int32_t {\n    off = 0,\n    default_ = 1,\n};\n",
            "\nstruct A_B {\n};\n\nstruct A {\n    using Kind = A_Kind;\n    using B = A_B;\n\n",
            "\n    /// Speed. Unit: m/s\n    std::optional<double> x{};\n    std::int32_t y = 0;\n",
            "\n    std::vector<Kind> kinds{};\n    std::optional<B> b{};\n",
            "    static void visit(V&&) {}\n",
            "        visit(Field<5>(), &M::new_);\n        visit(Field<4>(), &M::kinds);\n",
            "        visit(Field<2, Wire::zigzag>(), &M::y);\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn what_has_no_form_fails() {
        for body in [
            "map<string, double> m = 1;",
            "oneof o { bool a = 1; bool b = 2; }",
            "A a = 1;",
            "repeated double a = 1 [packed = false];",
        ] {
            assert!(header_of(body).is_err(), "{body}");
        }
    }
}
