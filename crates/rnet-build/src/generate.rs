//! The code: prost's types, and for each message what `rnet` needs beside it.

use crate::comments;
use crate::error::BuildError;
use crate::names::{self, BUILTIN_PACKAGES};
use crate::sources::{join, with_imports};
use prost::Message;
use prost_build::Module;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet};
use rnet_schema::Schema;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Folder in `OUT_DIR` with the descriptor sets, one for each message.
const SET_FOLDER: &str = "rnet_protos";

/// A message type that gets code.
pub(crate) struct MessageCode {
    package: String,
    name: String,
    /// Path in the module of its package.
    path: String,
    /// Descriptor set with comments.
    set: Vec<u8>,
    /// Rust name and number of fields that are lists of strings.
    string_lists: Vec<(String, i32)>,
}

/// All messages of these files, nested ones too.
pub(crate) fn messages(
    set: &FileDescriptorSet,
    files: &[String],
) -> Result<Vec<MessageCode>, BuildError> {
    let mut found = Vec::new();
    for file in set.file.iter().filter(|file| files.iter().any(|name| name == file.name())) {
        // The limits are those of one type, and not of all that a build has.
        let bytes = with_imports(set, file).encode_to_vec();
        let mut scopes = Vec::new();
        for message in &file.message_type {
            visit(&bytes, file.package(), message, &mut scopes, &mut found)?;
        }
    }
    Ok(found)
}

fn visit(
    bytes: &[u8],
    package: &str,
    message: &DescriptorProto,
    scopes: &mut Vec<String>,
    found: &mut Vec<MessageCode>,
) -> Result<(), BuildError> {
    // The entry of a map is no type of its own in Rust.
    if message.options.as_ref().is_some_and(|options| options.map_entry()) {
        return Ok(());
    }
    scopes.push(message.name().to_owned());
    let name = join(package, &scopes.join("."));
    let schema = Schema::from_descriptor_set(bytes, &name)
        .map_err(|error| BuildError::Type { name: name.clone(), error })?;
    let string_lists = message
        .field
        .iter()
        .filter(|field| field.label() == Label::Repeated && field.r#type() == Type::String)
        .map(|field| (names::snake(field.name()), field.number()))
        .collect();
    found.push(MessageCode {
        package: package.to_owned(),
        name,
        path: names::path(scopes),
        set: schema.descriptor_set_with_docs(),
        string_lists,
    });
    for nested in &message.nested_type {
        visit(bytes, package, nested, scopes, found)?;
    }
    scopes.pop();
    Ok(())
}

/// The code of all packages but the built-in ones, in modules as the packages lie in each other.
pub(crate) fn user_code(
    set: &FileDescriptorSet,
    messages: &[MessageCode],
) -> Result<String, BuildError> {
    let packages = prost_code(set, &BUILTIN_PACKAGES, |_| true)?;
    let mut root = PackageTree::default();
    for (module, code) in packages {
        let tree = module
            .parts()
            .fold(&mut root, |tree, part| tree.children.entry(part.to_owned()).or_default());
        tree.code = code;
        let own = messages
            .iter()
            .filter(|message| Module::from_protobuf_package_name(&message.package) == module);
        for message in own {
            tree.code.push_str(&impl_code(message));
        }
    }
    let mut code = String::from(
        "// Made by rnet-build.\n#[allow(clippy::all, clippy::pedantic, missing_docs, rustdoc::all, unused_qualifications)]\nmod rnet_protos {\n",
    );
    root.write(&mut code);
    code.push_str("}\n#[allow(unused_imports)]\npub use rnet_protos::*;\n");
    Ok(code)
}

/// The code of the own files of one built-in package.
pub(crate) fn package_code(
    set: &FileDescriptorSet,
    package: &str,
    own: &[String],
    messages: &[MessageCode],
) -> Result<String, BuildError> {
    let others: Vec<&str> =
        BUILTIN_PACKAGES.into_iter().filter(|other| *other != package).collect();
    let is_own = |file: &str| own.iter().any(|name| name == file);
    let mut packages = prost_code(set, &others, is_own)?;
    let mut code =
        packages.remove(&Module::from_protobuf_package_name(package)).unwrap_or_default();
    for message in messages.iter().filter(|message| message.package == package) {
        code.push_str(&impl_code(message));
    }
    Ok(code)
}

/// prost's types by package, of the own files; the types of some built-in packages are those of `rnet`.
fn prost_code(
    set: &FileDescriptorSet,
    from_rnet: &[&str],
    is_own: impl Fn(&str) -> bool,
) -> Result<BTreeMap<Module, String>, BuildError> {
    let mut config = prost_build::Config::new();
    config.prost_path("::rnet::protobuf::prost");
    config.prost_types_path("::rnet::protobuf::prost_types");
    for package in from_rnet {
        config.extern_path(format!(".{package}"), names::builtin_module(package));
    }
    // All files, also those without code: whether a type is recursive, or may be `Copy`, is seen from what it holds.
    let requests = set.file.iter().cloned().map(|mut file| {
        comments::sanitize(&mut file);
        comments::add_locations(&mut file);
        let package = if is_own(file.name()) { file.package() } else { "rnet.not_own" };
        (Module::from_protobuf_package_name(package), file)
    });
    let packages = config
        .generate(requests.collect())
        .map_err(|error| BuildError::Generate { why: error.to_string() })?;
    Ok(packages.into_iter().collect())
}

/// What makes a prost type a message of `rnet`.
fn impl_code(message: &MessageCode) -> String {
    let MessageCode { name, path, .. } = message;
    let mut code = format!(
        "::rnet::protobuf_message!({path}, {name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{SET_FOLDER}/{name}.bin\"))"
    );
    for (field, number) in &message.string_lists {
        // Writing to a String cannot fail.
        let _ = write!(code, ", {field} = {number}");
    }
    code.push_str(");\n");
    code
}

/// Packages in each other.
#[derive(Default)]
struct PackageTree {
    code: String,
    children: BTreeMap<String, PackageTree>,
}

impl PackageTree {
    fn write(&self, out: &mut String) {
        out.push_str(&self.code);
        for (name, tree) in &self.children {
            out.push_str(&format!("pub mod {name} {{\n"));
            tree.write(out);
            out.push_str("}\n");
        }
    }
}

/// Writes the descriptor sets.
pub(crate) fn write_sets(out_dir: &Path, messages: &[MessageCode]) -> Result<(), BuildError> {
    let folder = out_dir.join(SET_FOLDER);
    std::fs::create_dir_all(&folder)
        .map_err(|error| BuildError::Write { path: folder.clone(), error })?;
    for message in messages {
        write(&folder.join(format!("{}.bin", message.name)), &message.set)?;
    }
    Ok(())
}

/// Writes a file, if it is not the same already: what did not change need not be compiled again.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    std::fs::write(path, bytes).map_err(|error| BuildError::Write { path: path.to_owned(), error })
}
