//! A message type as the text of a `.proto` file, generated from its descriptors.
//!
//! For a type with a single package, the text compiles to the same type. If a field's comment ends with a
//! unit, the unit is printed after the field, where people look for it.

use std::ops::Range;

use rnet::schema::{Docs, Schema, unit_of};
use rnet_schema::prost_reflect::{
    EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, Syntax,
};
use rnet_schema::reflect::ReflectSchema;

use crate::text::escape_controls;

/// Reserved numbers up to this one are written `to max`.
const MAX_FIELD_NUMBER: u32 = 536_870_911;

/// The message; with `all`, also every type that it needs.
pub fn proto_text(schema: &Schema, all: bool) -> String {
    let mut text = ProtoWriter { docs: schema.docs(), out: String::new(), indent: 0 };
    let asked = outermost(schema.descriptor());
    let home = asked.parent_file();
    text.header(&home);
    text.message(&asked, None);
    if all {
        text.other_types(&home, asked.full_name());
        let others = asked.parent_pool().files().filter(|f| *f != home);
        for file in others.filter(|f| !f.name().starts_with("google/protobuf/")) {
            text.line("");
            text.line(&format!("// From {}.", escape_controls(file.name())));
            text.header(&file);
            text.other_types(&file, "");
        }
    }
    text.out
}

/// A nested type is shown within its outermost message.
fn outermost(message: &MessageDescriptor) -> MessageDescriptor {
    let mut message = message.clone();
    while let Some(parent) = message.parent_message() {
        message = parent;
    }
    message
}

/// Type and label of a field, as in `repeated foxglove.Pose`.
pub fn field_type(field: &FieldDescriptor) -> String {
    let label = match () {
        () if field.is_map() => "",
        () if field.is_list() => "repeated ",
        () if field.is_required() => "required ",
        () if is_optional(field) => "optional ",
        () => "",
    };
    format!("{label}{}", single_type(field))
}

fn is_optional(field: &FieldDescriptor) -> bool {
    let in_oneof = field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic());
    let proto2 = field.parent_file().syntax() == Syntax::Proto2;
    !in_oneof
        && (field.field_descriptor_proto().proto3_optional()
            || proto2 && !is_map_entry_field(field))
}

fn is_map_entry_field(field: &FieldDescriptor) -> bool {
    field.parent_message().is_map_entry()
}

fn single_type(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            format!("map<{}, {}>", single_type(&key), single_type(&value))
        }
        Kind::Message(_) if field.is_group() => "group".to_owned(),
        Kind::Message(message) => shortest_name(field, message.full_name()),
        Kind::Enum(enumeration) => shortest_name(field, enumeration.full_name()),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

/// The name of a type at a field: as short as possible without meaning another type.
fn shortest_name(field: &FieldDescriptor, full_name: &str) -> String {
    let message = field.parent_message();
    let package = message.package_name();
    let mut scope = message.full_name();
    loop {
        let short = full_name.strip_prefix(scope).and_then(|rest| rest.strip_prefix('.'));
        if let Some(short) = short.filter(|short| resolve_name(field, short) == full_name) {
            return short.to_owned();
        }
        if scope.len() <= package.len() {
            break;
        }
        scope = scope.rsplit_once('.').map_or("", |(outer, _)| outer);
    }
    match resolve_name(field, full_name) == full_name {
        true => full_name.to_owned(),
        false => format!(".{full_name}"),
    }
}

/// The full name of a written name at a field: the innermost scope in which its first word is defined
/// decides.
fn resolve_name(field: &FieldDescriptor, written: &str) -> String {
    let pool = field.parent_pool();
    let first = written.split('.').next().unwrap_or_default();
    let mut scope = Some(field.parent_message().full_name());
    while let Some(name) = scope {
        let candidate = format!("{name}.{first}");
        if pool.get_message_by_name(&candidate).is_some()
            || pool.get_enum_by_name(&candidate).is_some()
        {
            return format!("{name}.{written}");
        }
        scope = name.rsplit_once('.').map(|(outer, _)| outer);
    }
    written.to_owned()
}

/// The comment without the unit at its end, and the unit.
fn split_unit(comment: &str) -> (String, Option<&str>) {
    let unit = unit_of(comment);
    let bare = match (unit, comment.rsplit_once("Unit: ")) {
        (Some(_), Some((before, _))) => before.trim_end(),
        _ => comment,
    };
    (bare.to_owned(), unit)
}

struct ProtoWriter<'a> {
    docs: &'a Docs,
    out: String,
    indent: usize,
}

impl ProtoWriter<'_> {
    fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(&"  ".repeat(self.indent));
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.line(format!("// {}", escape_controls(line)).trim_end());
        }
    }

    fn doc(&mut self, full_name: &str) {
        if let Some(text) = self.docs.get(full_name) {
            self.comment(text);
        }
    }

    fn header(&mut self, file: &FileDescriptor) {
        let syntax = if file.syntax() == Syntax::Proto2 { "proto2" } else { "proto3" };
        self.line(&format!("syntax = \"{syntax}\";"));
        if !file.package_name().is_empty() {
            self.line(&format!("package {};", file.package_name()));
        }
        let mut imports: Vec<String> =
            file.dependencies().map(|f| escape_controls(f.name()).into_owned()).collect();
        imports.sort();
        for import in imports {
            self.line(&format!("import \"{import}\";"));
        }
        self.line("");
    }

    /// The other types of a file.
    fn other_types(&mut self, file: &FileDescriptor, shown: &str) {
        let mut first = shown.is_empty();
        for message in file.messages().filter(|m| m.full_name() != shown) {
            if !std::mem::take(&mut first) {
                self.line("");
            }
            self.message(&message, None);
        }
        for enumeration in file.enums() {
            if !std::mem::take(&mut first) {
                self.line("");
            }
            self.enumeration(&enumeration);
        }
    }

    /// A message; for a group, after the text of its field.
    fn message(&mut self, message: &MessageDescriptor, group: Option<&str>) {
        match group {
            Some(field) => self.line(&format!("{field} {{")),
            None => {
                self.doc(message.full_name());
                self.line(&format!("message {} {{", message.name()));
            }
        }
        self.indent += 1;
        for enumeration in message.child_enums() {
            self.enumeration(&enumeration);
        }
        let is_group = |child: &MessageDescriptor| {
            message.fields().any(|f| f.is_group() && f.kind().as_message() == Some(child))
        };
        for child in message.child_messages().filter(|m| !m.is_map_entry() && !is_group(m)) {
            self.message(&child, None);
        }
        let text = |r: Range<u32>| match r.end.saturating_sub(1) {
            last if last == r.start => last.to_string(),
            MAX_FIELD_NUMBER.. => format!("{} to max", r.start),
            last => format!("{} to {last}", r.start),
        };
        self.reserved(message.reserved_ranges().map(text).collect(), message.reserved_names());
        let extensions: Vec<String> = message.extension_ranges().map(text).collect();
        if !extensions.is_empty() {
            self.line(&format!("extensions {};", extensions.join(", ")));
        }
        let mut oneofs = Vec::new();
        for field in message.fields() {
            match field.containing_oneof().filter(|oneof| !oneof.is_synthetic()) {
                Some(oneof) if oneofs.contains(&oneof) => {}
                Some(oneof) => {
                    self.line(&format!("oneof {} {{", oneof.name()));
                    self.indent += 1;
                    oneof.fields().for_each(|field| self.field(&field));
                    self.indent -= 1;
                    self.line("}");
                    oneofs.push(oneof);
                }
                None => self.field(&field),
            }
        }
        self.indent -= 1;
        self.line("}");
    }

    fn reserved<'n>(&mut self, ranges: Vec<String>, names: impl Iterator<Item = &'n str>) {
        let names: Vec<String> =
            names.map(|name| format!("\"{}\"", escape_controls(name))).collect();
        for list in [ranges, names].iter().filter(|list| !list.is_empty()) {
            self.line(&format!("reserved {};", list.join(", ")));
        }
    }

    fn field(&mut self, field: &FieldDescriptor) {
        let (comment, unit) = split_unit(self.docs.get(field.full_name()).unwrap_or_default());
        self.comment(&comment);
        let head = field_type(field);
        if let (true, Kind::Message(group)) = (field.is_group(), field.kind()) {
            let head = format!("{head} {} = {}{}", group.name(), field.number(), options(field));
            return self.message(&group, Some(&head));
        }
        let unit =
            unit.map_or_else(String::new, |unit| format!("  // Unit: {}", escape_controls(unit)));
        self.line(&format!(
            "{head} {} = {}{};{unit}",
            field.name(),
            field.number(),
            options(field)
        ));
    }

    fn enumeration(&mut self, enumeration: &EnumDescriptor) {
        self.doc(enumeration.full_name());
        self.line(&format!("enum {} {{", enumeration.name()));
        self.indent += 1;
        let alias = enumeration.enum_descriptor_proto().options.as_ref();
        if alias.is_some_and(|options| options.allow_alias()) {
            self.line("option allow_alias = true;");
        }
        let ranges: Vec<String> = enumeration
            .reserved_ranges()
            .map(|r| match (*r.start(), *r.end()) {
                (start, end) if start == end => start.to_string(),
                (start, i32::MAX) => format!("{start} to max"),
                (start, end) => format!("{start} to {end}"),
            })
            .collect();
        self.reserved(ranges, enumeration.reserved_names());
        for value in enumeration.values() {
            // Comments of values are stored under the name of their enum; in descriptors they are next to the
            // enum.
            self.doc(&format!("{}.{}", enumeration.full_name(), value.name()));
            self.line(&format!("{} = {};", value.name(), value.number()));
        }
        self.indent -= 1;
        self.line("}");
    }
}

/// ` [default = 1, packed = true]`: the options that the canonical form keeps.
fn options(field: &FieldDescriptor) -> String {
    let proto = field.field_descriptor_proto();
    let mut options = Vec::new();
    if let Some(default) = &proto.default_value {
        let text = match field.kind() {
            Kind::String => serde_json::Value::from(default.as_str()).to_string(),
            // Already escaped.
            Kind::Bytes => format!("\"{default}\""),
            _ => default.clone(),
        };
        options.push(format!("default = {}", escape_controls(&text)));
    }
    if let Some(packed) = proto.options.as_ref().and_then(|options| options.packed) {
        options.push(format!("packed = {packed}"));
    }
    if options.is_empty() { String::new() } else { format!(" [{}]", options.join(", ")) }
}
