//! `.proto` files, folders of them, and descriptor sets, as given on the command line.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use rnet::schema::limits::MAX_SCHEMA_LEN_BYTES;
use rnet::schema::{CompiledProtos, Schema, SchemaError, Sources};

use crate::error::{Failure, Outcome};

/// Maximum number of `.proto` files in a folder: a folder with more is probably not the intended one.
const MAX_FOLDER_FILES: usize = 4096;
/// Maximum depth of searched folders.
const MAX_FOLDER_DEPTH: usize = 32;
/// File extensions of descriptor sets: those of protoc, of buf, of ours, of others.
const SET_EXTENSIONS: [&str; 5] = ["bin", "binpb", "pb", "desc", "protoset"];

/// A compiled file.
pub struct CompiledFile {
    /// The path as given.
    pub path: PathBuf,
    pub compiled: CompiledProtos,
}

/// Compiles a file or a folder, or reads a descriptor set.
pub fn compile(path: &Path, includes: &[PathBuf]) -> Outcome<Vec<CompiledFile>> {
    let metadata = std::fs::metadata(path)
        .map_err(|e| Failure::Failed(format!("cannot read {}: {e}", path.display())))?;
    if metadata.is_dir() {
        return folder(path, includes);
    }
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let sources = includes.iter().fold(Sources::default(), Sources::folder);
    let compiled = match extension {
        "proto" => sources.compile_file(path).map_err(|e| schema_failure(path, e))?,
        set if SET_EXTENSIONS.contains(&set) => descriptor_set(path)?,
        _ => {
            return Err(Failure::Usage(format!(
                "{} is not a .proto file, a folder or a descriptor set (.{})",
                path.display(),
                SET_EXTENSIONS.join(", .")
            )));
        }
    };
    Ok(vec![CompiledFile { path: path.to_owned(), compiled }])
}

fn folder(root: &Path, includes: &[PathBuf]) -> Outcome<Vec<CompiledFile>> {
    let mut files = Vec::new();
    find(root, 0, &mut files)?;
    if files.is_empty() {
        return Err(Failure::Failed(format!("no .proto file in {}", root.display())));
    }
    let sources = std::iter::once(root).chain(includes.iter().map(PathBuf::as_path));
    let sources = sources.fold(Sources::default(), Sources::folder);
    let compile = |path: PathBuf| {
        let compiled = sources.compile_file(&path).map_err(|e| schema_failure(&path, e))?;
        Ok(CompiledFile { path, compiled })
    };
    files.into_iter().map(compile).collect()
}

/// All `.proto` files below a folder, sorted by name. Hidden folders and links to folders are skipped.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Outcome {
    let failed =
        |e: std::io::Error| Failure::Failed(format!("cannot read {}: {e}", folder.display()));
    if depth > MAX_FOLDER_DEPTH {
        let what =
            format!("{} is nested more than {MAX_FOLDER_DEPTH} folders deep", folder.display());
        return Err(Failure::Failed(what));
    }
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.file_type().map_err(failed)?.is_dir() {
            if !hidden {
                find(&path, depth + 1, files)?;
            }
        } else if path.extension() == Some(OsStr::new("proto")) {
            files.push(path);
            if files.len() > MAX_FOLDER_FILES {
                return Err(Failure::Failed(format!(
                    "{} holds more than {MAX_FOLDER_FILES} .proto files; give a subfolder",
                    folder.display()
                )));
            }
        }
    }
    Ok(())
}

fn descriptor_set(path: &Path) -> Outcome<CompiledProtos> {
    let failed =
        |e: std::io::Error| Failure::Failed(format!("cannot read {}: {e}", path.display()));
    let mut bytes = Vec::new();
    // Reads one byte more than the limit, so that the limit is reported as the error.
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_SCHEMA_LEN_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    CompiledProtos::from_descriptor_set(&bytes).map_err(|e| schema_failure(path, e))
}

/// The error with the path as the user wrote it, which terminals and editors can open.
fn schema_failure(path: &Path, mut error: SchemaError) -> Failure {
    let mut own = false;
    if let SchemaError::Proto { place, .. }
    | SchemaError::MissingImport { place, .. }
    | SchemaError::CyclicImport { place, .. } = &mut error
    {
        // In the error a file has the name by which it would be imported.
        own = path.ends_with(&place.file);
        if own {
            place.file = path.display().to_string();
        }
    }
    let named =
        own || matches!(&error, SchemaError::Read { path: at, .. } if Path::new(at) == path);
    Failure::Failed(match named {
        true => error.to_string(),
        false => format!("{}: {error}", path.display()),
    })
}

/// The type with this name, which must be equal in all files that define it (with `own`) or also have it by
/// import (without `own`); `None` if it is not defined.
pub fn schema(units: &[CompiledFile], name: &str, own: bool) -> Outcome<Option<Schema>> {
    let mut found: Option<(&Path, Schema)> = None;
    for unit in units {
        let names = match own {
            true => unit.compiled.messages(),
            false => unit.compiled.all_messages(),
        };
        if !names.iter().any(|n| n == name) {
            continue;
        }
        let schema = unit.compiled.schema(name).map_err(|e| schema_failure(&unit.path, e))?;
        match &found {
            Some((first, other)) if *other != schema => {
                return Err(Failure::Failed(format!(
                    "{name} is defined differently in {} and in {}",
                    first.display(),
                    unit.path.display()
                )));
            }
            Some(_) => {}
            None => found = Some((&unit.path, schema)),
        }
    }
    Ok(found.map(|(_, schema)| schema))
}
