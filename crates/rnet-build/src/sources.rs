//! The input files: compiles and combines them, and selects the user's own.

use crate::error::BuildError;
use crate::names::BUILTIN_PACKAGES;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use rnet_schema::{CompiledProtos, Schema, SchemaError};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The result of the compilation.
pub(crate) struct Sources {
    /// All files and their imports.
    pub(crate) set: FileDescriptorSet,
    /// The paths that were read.
    pub(crate) read: Vec<PathBuf>,
}

/// Compiles the files and their imports.
pub(crate) fn read(files: &[PathBuf], includes: &[PathBuf]) -> Result<Sources, BuildError> {
    let folders = folders(files, includes);
    let mut set = FileDescriptorSet::default();
    let mut read = Vec::new();
    for path in files {
        let failed = |error| BuildError::Schema { file: path.clone(), error };
        let compiled = rnet_schema::compile_file(path, &folders).map_err(failed)?;
        let own = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        if !read.contains(path) {
            read.push(path.clone());
        }
        for file in decode(&compiled).map_err(failed)?.file {
            // The search order of the compiler.
            let candidates =
                std::iter::once(&own).chain(&folders).map(|folder| folder.join(file.name()));
            let found = candidates.into_iter().find(|path| path.is_file());
            read.extend(found.filter(|found| !read.contains(found)));
            add(&mut set, file, path)?;
        }
    }
    check_duplicate_types(&set)?;
    Ok(Sources { set, read })
}

/// The include folders, or if none the folders of the files.
fn folders(files: &[PathBuf], includes: &[PathBuf]) -> Vec<PathBuf> {
    if !includes.is_empty() {
        return includes.to_vec();
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in files.iter().filter_map(|file| file.parent()) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders
}

fn decode(compiled: &CompiledProtos) -> Result<FileDescriptorSet, SchemaError> {
    FileDescriptorSet::decode(&*compiled.descriptor_set())
        .map_err(|error| SchemaError::Malformed { offset: 0, why: error.to_string() })
}

/// Adds a file that was compiled with `root`, if it is new.
fn add(
    set: &mut FileDescriptorSet,
    file: FileDescriptorProto,
    root: &Path,
) -> Result<(), BuildError> {
    match set.file.iter().find(|known| known.name() == file.name()) {
        Some(known) if *known == file => Ok(()),
        Some(_) => Err(BuildError::Duplicate {
            what: format!("import {:?}", file.name()),
            first: "an earlier file".into(),
            second: format!("another one, compiled with {}", root.display()),
        }),
        None => {
            set.file.push(file);
            Ok(())
        }
    }
}

/// All built-in files and their imports.
pub(crate) fn builtin() -> Result<FileDescriptorSet, BuildError> {
    const ROOT: &str = "builtin.proto";
    let imports: String =
        rnet_schema::builtin_files().map(|name| format!("import {name:?};\n")).collect();
    let failed = |error| BuildError::Schema { file: ROOT.into(), error };
    let text = format!("syntax = \"proto3\";\n{imports}");
    let compiled = rnet_schema::compile_text(ROOT, &text).map_err(failed)?;
    let mut set = decode(&compiled).map_err(failed)?;
    set.file.retain(|file| file.name() != ROOT);
    Ok(set)
}

/// A file and its transitive imports, in their order in `set`.
pub(crate) fn with_imports(
    set: &FileDescriptorSet,
    file: &FileDescriptorProto,
) -> FileDescriptorSet {
    let by_name: HashMap<&str, &FileDescriptorProto> =
        set.file.iter().map(|file| (file.name(), file)).collect();
    let mut needed = HashSet::from([file.name()]);
    let mut waiting = vec![file];
    while let Some(next) = waiting.pop() {
        for import in &next.dependency {
            if needed.insert(import) {
                waiting.extend(by_name.get(import.as_str()));
            }
        }
    }
    let file = set.file.iter().filter(|file| needed.contains(file.name())).cloned().collect();
    FileDescriptorSet { file }
}

/// Names of the files to generate code for, without those whose types `rnet` and prost contain.
pub(crate) fn own_files(set: &FileDescriptorSet) -> Result<Vec<String>, BuildError> {
    let mut own = Vec::new();
    let mut builtin_set = None;
    for file in &set.file {
        let package = file.package();
        if is_inside(package, "google.protobuf") {
            continue;
        }
        if !BUILTIN_PACKAGES.iter().any(|reserved| is_inside(package, reserved)) {
            own.push(file.name().to_owned());
            continue;
        }
        let known = match &mut builtin_set {
            Some(known) => known,
            none => none.insert(builtin()?.encode_to_vec()),
        };
        let bytes = with_imports(set, file).encode_to_vec();
        for message in &file.message_type {
            let name = join(package, message.name());
            let theirs = Schema::from_descriptor_set(&bytes, &name)
                .map_err(|error| BuildError::Type { name: name.clone(), error })?;
            if Schema::from_descriptor_set(known, &name).ok() != Some(theirs) {
                return Err(reserved(file, name));
            }
        }
        if let Some(only) = file.enum_type.first().filter(|_| file.message_type.is_empty()) {
            return Err(reserved(file, join(package, only.name())));
        }
    }
    Ok(own)
}

fn reserved(file: &FileDescriptorProto, name: String) -> BuildError {
    BuildError::BuiltIn {
        file: file.name().to_owned(),
        name,
        packages: BUILTIN_PACKAGES.join(" and "),
    }
}

fn is_inside(package: &str, outer: &str) -> bool {
    package.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A full name; in a file without a package, the name alone.
pub(crate) fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

fn check_duplicate_types(set: &FileDescriptorSet) -> Result<(), BuildError> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for file in &set.file {
        let messages = file.message_type.iter().map(DescriptorProto::name);
        let enums = file.enum_type.iter().map(|e| e.name());
        for name in messages.chain(enums) {
            let full = join(file.package(), name);
            if let Some(first) = seen.insert(full.clone(), file.name()) {
                let (first, second) = (first.to_owned(), file.name().to_owned());
                return Err(BuildError::Duplicate { what: full, first, second });
            }
        }
    }
    Ok(())
}
