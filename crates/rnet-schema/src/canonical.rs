//! The canonical form of one message type and its dependencies.
//!
//! Compilers write descriptor sets with whole files, options for other languages, and files in build order.
//! The canonical form is minimal. It contains only types that the root reaches; a type that encloses a
//! reached one stays as an empty shell, for its name. Files come after their imports and otherwise by name,
//! and fields are ordered by number. Only options that change the encoding are kept. Enum values keep their
//! order: the first is the default, and the first of an alias is the one shown.
//!
//! Schema equality compares the structure, which omits file names, comments and reserved numbers:
//! `robot.proto` and `msgs/robot.proto` with the same text are the same type. The hash includes the
//! reservations: compatibility depends on them, so one description can represent all types with its hash only
//! if it contains them.
//!
//! The input may be hostile. `check` validates everything that is kept; everything else is dropped.

mod check;

use crate::docs::{self, Docs};
use crate::error::{SchemaError, SourceLocation};
use crate::limits::{MAX_SCHEMA_FULL_NAME_LEN_BYTES, MAX_SCHEMA_NAME_LEN_BYTES};
use crate::name::join;
use prost::Message;
use prost_types::descriptor_proto::ExtensionRange;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, EnumValueDescriptorProto,
    FieldDescriptorProto, FieldOptions, FileDescriptorProto, FileDescriptorSet, MessageOptions,
    OneofDescriptorProto,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) struct Canonical {
    pub(crate) set: FileDescriptorSet,
    /// The bytes that equality compares.
    pub(crate) structure: Vec<u8>,
    /// The bytes that the hash adds to the structure; empty without reservations.
    pub(crate) reserved: Vec<u8>,
    pub(crate) docs: Docs,
}

#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Message(&'a DescriptorProto),
    Enum(&'a EnumDescriptorProto),
}

pub(crate) struct Entry<'a> {
    pub(crate) item: Item<'a>,
    pub(crate) file: usize,
    pub(crate) proto3: bool,
}

/// All types of the set by full name.
pub(crate) type Index<'a> = BTreeMap<String, Entry<'a>>;

pub(crate) fn invalid(at: &str, why: impl Into<String>) -> SchemaError {
    SchemaError::Invalid { at: at.to_owned(), why: why.into() }
}

/// The canonical form of the message type `root` of a set that passed [`crate::scan::filter`].
pub(crate) fn canonical(set: &FileDescriptorSet, root: &str) -> Result<Canonical, SchemaError> {
    check_files(&set.file)?;
    let index = index(&set.file)?;
    if !matches!(index.get(root), Some(Entry { item: Item::Message(_), .. })) {
        return Err(unknown(&index, root));
    }
    let reached = reach(&index, root)?;
    check::lookups(&index, &reached)?;
    let emit = Emitter { files: &set.file, index: &index, reached: &reached };
    Ok(Canonical {
        set: emit.set()?,
        structure: emit.structure(),
        reserved: emit.reserved(),
        docs: docs::collect(&set.file, &reached),
    })
}

/// Names of the message types that a set defines, without map entries.
pub(crate) fn message_names(set: &FileDescriptorSet) -> Result<Vec<String>, SchemaError> {
    let index = index(&set.file)?;
    let own = |entry: &Entry| matches!(entry.item, Item::Message(m) if !is_map_entry(m));
    Ok(index.iter().filter(|(_, entry)| own(entry)).map(|(name, _)| name.clone()).collect())
}

pub(crate) fn is_map_entry(message: &DescriptorProto) -> bool {
    message.options.as_ref().is_some_and(MessageOptions::map_entry)
}

/// How many names an error lists.
const MAX_LISTED_NAMES: usize = 12;

fn unknown(index: &Index<'_>, name: &str) -> SchemaError {
    let messages = index
        .iter()
        .filter(|(_, entry)| matches!(entry.item, Item::Message(m) if !is_map_entry(m)));
    // Users often type a name without its package: names with this ending come first.
    let mut known: Vec<String> = messages.map(|(name, _)| name.clone()).collect();
    let short = name.rsplit('.').next().unwrap_or_default();
    known.sort_by_key(|full| full.rsplit('.').next() != Some(short));
    known.truncate(MAX_LISTED_NAMES);
    SchemaError::UnknownType { name: clip(name), known }
}

/// A name for an error text, truncated if very long.
fn clip(name: &str) -> String {
    name.chars().take(MAX_SCHEMA_NAME_LEN_BYTES).collect()
}

fn is_proto3(file: &FileDescriptorProto) -> bool {
    file.syntax() == "proto3"
}

/// The error for a file with an edition, as text or compiled.
pub(crate) const NO_EDITIONS: &str =
    "editions are not supported; write syntax = \"proto3\" instead of the edition";

pub(crate) fn check_syntax(file: &FileDescriptorProto) -> Result<(), SchemaError> {
    match file.syntax() {
        "" | "proto2" | "proto3" => Ok(()),
        "editions" => Err(invalid(&clip(file.name()), NO_EDITIONS)),
        other => {
            let why = format!("syntax {:?} is not supported; use proto3", clip(other));
            Err(invalid(&clip(file.name()), why))
        }
    }
}

fn check_files(files: &[FileDescriptorProto]) -> Result<(), SchemaError> {
    let mut by_name = BTreeMap::new();
    for (i, file) in files.iter().enumerate() {
        let name = file.name();
        if name.is_empty() || name.len() > MAX_SCHEMA_NAME_LEN_BYTES {
            let why = format!("a file name has 1 to {MAX_SCHEMA_NAME_LEN_BYTES} bytes");
            return Err(invalid(&clip(name), why));
        }
        check_syntax(file)?;
        if by_name.insert(name, i).is_some() {
            return Err(invalid(name, "two files have this name"));
        }
    }
    let mut imports = Vec::with_capacity(files.len());
    for file in files {
        let mut own = BTreeSet::new();
        for dependency in &file.dependency {
            match by_name.get(dependency.as_str()) {
                Some(&i) => own.insert(i),
                None => {
                    let why = format!("it imports {:?}, which is not in the set", clip(dependency));
                    return Err(invalid(file.name(), why));
                }
            };
        }
        imports.push(own);
    }
    topological(files, &imports).map(|_| ())
}

/// The files, each after its imports, otherwise by name.
fn topological(
    files: &[FileDescriptorProto],
    imports: &[BTreeSet<usize>],
) -> Result<Vec<usize>, SchemaError> {
    let mut waiting: BTreeSet<(&str, usize)> =
        files.iter().enumerate().map(|(i, file)| (file.name(), i)).collect();
    let mut done = BTreeSet::new();
    let mut order = Vec::with_capacity(files.len());
    while !waiting.is_empty() {
        let ready = waiting.iter().find(|(_, i)| imports[*i].is_subset(&done)).copied();
        let Some(next) = ready else {
            return Err(cycle(files, imports, &done, waiting.iter().next().map_or(0, |w| w.1)));
        };
        waiting.remove(&next);
        done.insert(next.1);
        order.push(next.1);
    }
    Ok(order)
}

/// Every remaining file imports another remaining one, so following the imports finds a cycle.
fn cycle(
    files: &[FileDescriptorProto],
    imports: &[BTreeSet<usize>],
    done: &BTreeSet<usize>,
    start: usize,
) -> SchemaError {
    let mut walked = vec![start];
    loop {
        let last = walked[walked.len() - 1];
        let Some(next) = imports[last].iter().find(|i| !done.contains(i)).copied() else {
            return invalid(files[last].name(), "its imports are cyclic");
        };
        if let Some(at) = walked.iter().position(|&i| i == next) {
            walked.push(next);
            let cycle = walked[at..].iter().map(|&i| files[i].name().to_owned()).collect();
            let place = SourceLocation { file: files[last].name().to_owned(), line: 0, column: 0 };
            return SchemaError::CyclicImport { place, cycle };
        }
        walked.push(next);
    }
}

fn index(files: &[FileDescriptorProto]) -> Result<Index<'_>, SchemaError> {
    let mut index = Index::new();
    for (file, proto) in files.iter().enumerate() {
        let package = proto.package();
        if package.len() > MAX_SCHEMA_FULL_NAME_LEN_BYTES
            || !(package.is_empty() || package.split('.').all(check::is_identifier))
        {
            return Err(invalid(
                proto.name(),
                format!("package {:?} is not a valid name", clip(package)),
            ));
        }
        let at = (file, is_proto3(proto));
        for message in &proto.message_type {
            index_message(&mut index, at, package, message)?;
        }
        for enumeration in &proto.enum_type {
            add(&mut index, at, package, enumeration.name(), Item::Enum(enumeration))?;
        }
    }
    Ok(index)
}

fn index_message<'a>(
    index: &mut Index<'a>,
    at: (usize, bool),
    scope: &str,
    message: &'a DescriptorProto,
) -> Result<(), SchemaError> {
    let full = add(index, at, scope, message.name(), Item::Message(message))?;
    for nested in &message.nested_type {
        index_message(index, at, &full, nested)?;
    }
    for enumeration in &message.enum_type {
        add(index, at, &full, enumeration.name(), Item::Enum(enumeration))?;
    }
    Ok(())
}

fn add<'a>(
    index: &mut Index<'a>,
    (file, proto3): (usize, bool),
    scope: &str,
    name: &str,
    item: Item<'a>,
) -> Result<String, SchemaError> {
    let full = check::full_name(scope, name)?;
    if index.insert(full.clone(), Entry { item, file, proto3 }).is_some() {
        return Err(invalid(&full, "the set defines it twice"));
    }
    Ok(full)
}

/// The types that a message of type `root` can contain, including itself; checks each one.
fn reach(index: &Index<'_>, root: &str) -> Result<BTreeSet<String>, SchemaError> {
    let mut reached = BTreeSet::from([root.to_owned()]);
    let mut waiting = vec![root.to_owned()];
    while let Some(name) = waiting.pop() {
        let entry = &index[&name];
        match entry.item {
            Item::Message(message) => {
                check::message(index, &name, message, entry.proto3)?;
                for field in &message.field {
                    let Some(target) = target_of(field) else { continue };
                    if reached.insert(target.to_owned()) {
                        waiting.push(target.to_owned());
                    }
                }
            }
            Item::Enum(enumeration) => check::enumeration(&name, enumeration)?,
        }
    }
    Ok(reached)
}

/// Full name of the message or enum type of a checked field.
pub(crate) fn target_of(field: &FieldDescriptorProto) -> Option<&str> {
    field.type_name.as_deref().and_then(|name| name.strip_prefix('.'))
}

struct Emitter<'a> {
    files: &'a [FileDescriptorProto],
    index: &'a Index<'a>,
    reached: &'a BTreeSet<String>,
}

impl Emitter<'_> {
    fn set(&self) -> Result<FileDescriptorSet, SchemaError> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for name in self.reached {
            let entry = &self.index[name];
            let Item::Message(message) = entry.item else { continue };
            let targets = message.field.iter().filter_map(target_of);
            imports[entry.file].extend(targets.map(|target| self.index[target].file));
        }
        for (i, own) in imports.iter_mut().enumerate() {
            own.remove(&i);
        }
        let used: BTreeSet<usize> = self.reached.iter().map(|name| self.index[name].file).collect();
        let order = topological(self.files, &imports)?;
        let kept = order.into_iter().filter(|i| used.contains(i));
        Ok(FileDescriptorSet { file: kept.map(|i| self.file(i, &imports[i])).collect() })
    }

    fn file(&self, i: usize, imports: &BTreeSet<usize>) -> FileDescriptorProto {
        let file = &self.files[i];
        let package = file.package();
        let mut dependency: Vec<String> =
            imports.iter().map(|&i| self.files[i].name().to_owned()).collect();
        dependency.sort_unstable();
        FileDescriptorProto {
            name: file.name.clone(),
            package: Some(package).filter(|p| !p.is_empty()).map(str::to_owned),
            dependency,
            message_type: self.messages(package, &file.message_type),
            enum_type: self.enums(package, &file.enum_type),
            syntax: is_proto3(file).then(|| "proto3".to_owned()),
            ..Default::default()
        }
    }

    /// The messages that are reached, and those that enclose a reached type.
    fn messages(&self, scope: &str, messages: &[DescriptorProto]) -> Vec<DescriptorProto> {
        let mut kept: Vec<DescriptorProto> = messages
            .iter()
            .filter_map(|message| {
                let full = join(scope, message.name());
                let nested_type = self.messages(&full, &message.nested_type);
                let enum_type = self.enums(&full, &message.enum_type);
                if self.reached.contains(&full) {
                    let reserved = reserved_in(message);
                    return Some(DescriptorProto {
                        nested_type,
                        enum_type,
                        reserved_range: reserved.reserved_range,
                        reserved_name: reserved.reserved_name,
                        extension_range: reserved.extension_range,
                        ..bare(message)
                    });
                }
                let shell = !(nested_type.is_empty() && enum_type.is_empty());
                let name = message.name.clone();
                shell.then(|| DescriptorProto {
                    name,
                    nested_type,
                    enum_type,
                    ..Default::default()
                })
            })
            .collect();
        kept.sort_by(|a, b| a.name.cmp(&b.name));
        kept
    }

    fn enums(&self, scope: &str, enums: &[EnumDescriptorProto]) -> Vec<EnumDescriptorProto> {
        let is_reached = |e: &&EnumDescriptorProto| self.reached.contains(&join(scope, e.name()));
        let with_reserved = |e: &EnumDescriptorProto| {
            let EnumDescriptorProto { reserved_range, reserved_name, .. } = reserved_in_enum(e);
            EnumDescriptorProto { reserved_range, reserved_name, ..bare_enum(e) }
        };
        let mut kept: Vec<_> = enums.iter().filter(is_reached).map(with_reserved).collect();
        kept.sort_by(|a, b| a.name.cmp(&b.name));
        kept
    }

    fn structure(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in self.reached {
            let entry = &self.index[name];
            let (kind, body) = match entry.item {
                Item::Message(message) => (MESSAGE_TAG, bare(message).encode_to_vec()),
                Item::Enum(enumeration) => (ENUM_TAG, bare_enum(enumeration).encode_to_vec()),
            };
            put(kind + u8::from(entry.proto3), name, &body, &mut out);
        }
        out
    }

    /// The numbers and names that types reserve or assign to extensions; empty for types without any.
    fn reserved(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for name in self.reached {
            let body = match self.index[name].item {
                Item::Message(message) => reserved_in(message).encode_to_vec(),
                Item::Enum(enumeration) => reserved_in_enum(enumeration).encode_to_vec(),
            };
            if !body.is_empty() {
                put(RESERVED_TAG, name, &body, &mut out);
            }
        }
        out
    }
}

// Tags of the records of the structure and reservations; the first two are one higher for a proto3 file.
const MESSAGE_TAG: u8 = 0;
const ENUM_TAG: u8 = 2;
const RESERVED_TAG: u8 = 4;

fn put(kind: u8, name: &str, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    for part in [name.as_bytes(), body] {
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(part);
    }
}

/// A message without nested types and reservations, its fields ordered by number.
fn bare(message: &DescriptorProto) -> DescriptorProto {
    let mut field: Vec<FieldDescriptorProto> = message.field.iter().map(bare_field).collect();
    field.sort_by_key(FieldDescriptorProto::number);
    let oneof_decl = renumber_oneofs(message, &mut field);
    DescriptorProto {
        name: message.name.clone(),
        field,
        oneof_decl,
        options: is_map_entry(message)
            .then(|| MessageOptions { map_entry: Some(true), ..Default::default() }),
        ..Default::default()
    }
}

/// The numbers and names that a message reserves or assigns to extensions.
fn reserved_in(message: &DescriptorProto) -> DescriptorProto {
    let mut reserved_range = message.reserved_range.clone();
    reserved_range.sort_by_key(|range| (range.start(), range.end()));
    let mut reserved_name = message.reserved_name.clone();
    reserved_name.sort_unstable();
    let extension_range = message.extension_range.iter();
    let mut extension_range: Vec<ExtensionRange> = extension_range
        .map(|range| ExtensionRange { start: range.start, end: range.end, options: None })
        .collect();
    extension_range.sort_by_key(|range| (range.start(), range.end()));
    DescriptorProto { reserved_range, reserved_name, extension_range, ..Default::default() }
}

/// Real oneofs ordered by their first field, then those that only represent the presence of an `optional`, as
/// protoc requires.
fn renumber_oneofs(
    message: &DescriptorProto,
    fields: &mut [FieldDescriptorProto],
) -> Vec<OneofDescriptorProto> {
    let (mut order, mut places) = (Vec::new(), HashMap::new());
    for synthetic in [false, true] {
        for field in fields.iter().filter(|f| f.proto3_optional() == synthetic) {
            let Some(oneof) = field.oneof_index else { continue };
            places.entry(oneof).or_insert_with(|| {
                order.push(oneof);
                order.len() as i32 - 1
            });
        }
    }
    for field in fields.iter_mut() {
        field.oneof_index = field.oneof_index.and_then(|old| places.get(&old).copied());
    }
    let name_of = |&i: &i32| message.oneof_decl[i as usize].name.clone();
    order.iter().map(|i| OneofDescriptorProto { name: name_of(i), ..Default::default() }).collect()
}

fn bare_field(field: &FieldDescriptorProto) -> FieldDescriptorProto {
    let packed = field.options.as_ref().and_then(|options| options.packed);
    FieldDescriptorProto {
        name: field.name.clone(),
        number: field.number,
        label: Some(field.label() as i32),
        r#type: field.r#type,
        type_name: field.type_name.clone(),
        default_value: field.default_value.clone(),
        oneof_index: field.oneof_index,
        json_name: field.json_name.clone().filter(|name| *name != json_name(field.name())),
        options: packed.map(|packed| FieldOptions { packed: Some(packed), ..Default::default() }),
        proto3_optional: field.proto3_optional.filter(|yes| *yes),
        ..Default::default()
    }
}

fn bare_enum(enumeration: &EnumDescriptorProto) -> EnumDescriptorProto {
    let bare_value = |value: &EnumValueDescriptorProto| EnumValueDescriptorProto {
        name: value.name.clone(),
        number: Some(value.number()),
        options: None,
    };
    let alias = enumeration.options.as_ref().is_some_and(EnumOptions::allow_alias);
    EnumDescriptorProto {
        name: enumeration.name.clone(),
        value: enumeration.value.iter().map(bare_value).collect(),
        options: alias.then(|| EnumOptions { allow_alias: Some(true), ..Default::default() }),
        ..Default::default()
    }
}

fn reserved_in_enum(enumeration: &EnumDescriptorProto) -> EnumDescriptorProto {
    let mut reserved_range = enumeration.reserved_range.clone();
    reserved_range.sort_by_key(|range| (range.start(), range.end()));
    let mut reserved_name = enumeration.reserved_name.clone();
    reserved_name.sort_unstable();
    EnumDescriptorProto { reserved_range, reserved_name, ..Default::default() }
}

/// The default JSON name of a field: `frame_id` becomes `frameId`.
fn json_name(name: &str) -> String {
    let mut json = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        if c == '_' {
            upper = true;
            continue;
        }
        json.push(if upper { c.to_ascii_uppercase() } else { c });
        upper = false;
    }
    json
}
