//! All message types that a command knows by name: those of the given files, or the built-in ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rnet::MessageType;
use rnet::msgs::plain::HeaderDescription;
use rnet::schema::{CompiledProtos, Sources, builtin_files};

use super::names;
use super::source_files::{self, CompiledFile};
use crate::error::{Failure, Outcome};

/// Types by full name; empty by default.
#[derive(Default)]
pub struct Catalog {
    units: Vec<CompiledFile>,
    /// Where the type is defined. Types of imports are found, but not listed.
    own: BTreeMap<String, Definition>,
    imported: BTreeMap<String, Definition>,
}

/// The definition of a type.
#[derive(Clone)]
enum Definition {
    /// The compiled file with this index.
    CompiledFile(usize),
    /// A built-in layout.
    Plain(Box<HeaderDescription>),
}

/// Name of the text that imports all built-in types.
const BUILT_IN: &str = "built in";

impl Catalog {
    /// Types of the given files, or the built-in ones. `include` has the folders of imports.
    pub fn of(files: &[PathBuf], include: &[PathBuf]) -> Outcome<Catalog> {
        if !files.is_empty() {
            return Catalog::of_files(files, include);
        }
        if !include.is_empty() {
            let what =
                "-I only sets where imports are searched; give the files themselves with --proto";
            return Err(Failure::Usage(what.to_owned()));
        }
        Catalog::built_in()
    }

    /// The built-in types of robot-net.
    pub fn built_in() -> Outcome<Catalog> {
        let mut text = "syntax = \"proto3\";\n".to_owned();
        for file in builtin_files() {
            text.push_str(&format!("import \"{file}\";\n"));
        }
        let compiled = Sources::default()
            .compile_text(BUILT_IN, &text)
            .map_err(|e| Failure::Failed(format!("the built-in types do not compile: {e}")))?;
        let names = compiled.all_messages();
        let own = names.into_iter().filter(|name| !name.starts_with("google.protobuf."));
        let plain = HeaderDescription::all().into_iter();
        let plain = plain.map(|one| (one.plain.name.clone(), Definition::Plain(Box::new(one))));
        let own = own.map(|name| (name, Definition::CompiledFile(0))).chain(plain).collect();
        let units = vec![CompiledFile { path: PathBuf::from(BUILT_IN), compiled }];
        Ok(Catalog { units, own, imported: BTreeMap::new() })
    }

    fn of_files(files: &[PathBuf], include: &[PathBuf]) -> Outcome<Catalog> {
        let mut units: Vec<CompiledFile> = Vec::new();
        for path in files {
            units.extend(source_files::compile(path, include)?);
        }
        let by_name = |of: fn(&CompiledProtos) -> Vec<String>| -> BTreeMap<String, Definition> {
            // The shown path is that of the first file; `get` compares the others with it.
            let all = units.iter().enumerate().rev();
            let named = |(i, unit): (usize, &CompiledFile)| {
                of(&unit.compiled).into_iter().map(move |name| (name, Definition::CompiledFile(i)))
            };
            all.flat_map(named).collect()
        };
        let (own, imported) =
            (by_name(CompiledProtos::messages), by_name(CompiledProtos::all_messages));
        Ok(Catalog { units, own, imported })
    }

    /// Full names of the types, in order; those of imports are left out.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.own.keys().map(String::as_str)
    }

    /// The type with this full or short name. Own types take precedence over those of imports.
    pub fn find(&self, name: &str) -> Outcome<MessageType> {
        let none = match self.is_built_in() {
            true => "no built-in type is named".to_owned(),
            false => {
                let paths: Vec<String> =
                    self.units.iter().map(|unit| unit.path.display().to_string()).collect();
                format!("no type in {} is named", first_paths(&paths))
            }
        };
        let found = names::find(name, self.names(), &none);
        let full = match found {
            Ok(full) => full,
            Err(failure) => {
                let imported = self.imported.keys().map(String::as_str);
                names::find(name, imported, &none).map_err(|_| failure)?
            }
        };
        self.get(full)
    }

    /// The type with this full name, one of [`Catalog::names`]. Files that define it differently are an
    /// error.
    pub fn get(&self, full: &str) -> Outcome<MessageType> {
        if let Some(Definition::Plain(described)) = self.defined(full) {
            return Ok(described.plain.clone().into());
        }
        // The text of the built-in types has all of them by import.
        let own = !self.is_built_in() && self.own.contains_key(full);
        let schema = source_files::schema(&self.units, full, own)?;
        let none = || Failure::Failed(format!("type {full} not found"));
        Ok(schema.ok_or_else(none)?.into())
    }

    /// The file that the user named for this type; `None` for a built-in type.
    pub fn path(&self, full: &str) -> Option<&Path> {
        match self.defined(full)? {
            Definition::CompiledFile(at) if !self.is_built_in() => Some(&self.units[*at].path),
            _ => None,
        }
    }

    fn defined(&self, full: &str) -> Option<&Definition> {
        self.own.get(full).or_else(|| self.imported.get(full))
    }

    fn is_built_in(&self) -> bool {
        matches!(self.units.as_slice(), [one] if one.path == Path::new(BUILT_IN))
    }
}

/// The first few of many paths.
fn first_paths(paths: &[String]) -> String {
    const MAX_SHOWN: usize = 3;
    match paths.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more files", paths[..MAX_SHOWN].join(", ")),
        None => paths.join(", "),
    }
}
