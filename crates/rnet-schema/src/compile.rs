//! Compiles `.proto` files to schemas, at run time and without protoc.
//!
//! protox parses and prost-reflect links. This module finds the files, so that the error for a missing or
//! cyclic import contains the statement and all searched folders.

use crate::builtin;
use crate::error::{SchemaError, SourceLocation};
use crate::limits::{MAX_PROTO_LEN_BYTES, MAX_SCHEMA_FILES};
use crate::{canonical, schema};
use prost::Message;
use prost_reflect::{DescriptorError, DescriptorPool};
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Search path of `.proto` files: the folder of the file itself, then the include folders in order, then the
/// built-in files.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    folders: Vec<PathBuf>,
    texts: Vec<(String, String)>,
}

/// The definitions of a `.proto` file or a descriptor set.
pub struct CompiledProtos {
    /// The file itself, without its imports; `None` for a descriptor set, whose files have equal rank.
    file: Option<String>,
    set: FileDescriptorSet,
}

/// Compiles a file. Searches imports in its own folder, in `includes`, and among the built-in files.
///
/// # Errors
/// [`SchemaError`] with file, line and column.
pub fn compile_file(
    path: impl AsRef<Path>,
    includes: &[impl AsRef<Path>],
) -> Result<CompiledProtos, SchemaError> {
    let folders = includes.iter().map(|folder| folder.as_ref().to_owned()).collect();
    Sources { folders, texts: Vec::new() }.compile_file(path)
}

/// Compiles the text of a file; only built-in files can be imported.
///
/// # Errors
/// As [`compile_file`].
pub fn compile_text(name: &str, text: &str) -> Result<CompiledProtos, SchemaError> {
    Sources::default().compile_text(name, text)
}

impl Sources {
    /// Appends an include directory.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Adds the text of a file that can be imported as `name`; it takes precedence over the built-in files.
    pub fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.push((name.into(), text.into()));
        self
    }

    /// Compiles a file. Its name in the descriptor set is its path in the first include folder that contains
    /// it, otherwise its file name.
    ///
    /// # Errors
    /// As [`compile_file`].
    pub fn compile_file(&self, path: impl AsRef<Path>) -> Result<CompiledProtos, SchemaError> {
        let path = path.as_ref();
        let text = read_file(path)?;
        let inside = self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
        let name = inside.or_else(|| path.file_name().map(Path::new)).unwrap_or(path);
        let name = name.to_string_lossy().into_owned();
        let mut folders = vec![path.parent().map_or_else(PathBuf::new, Path::to_owned)];
        folders.extend(self.folders.iter().cloned());
        Loader::new(folders, &self.texts).root(&name, &text)
    }

    /// Compiles a text as a file with this name.
    ///
    /// # Errors
    /// As [`compile_file`].
    pub fn compile_text(&self, name: &str, text: &str) -> Result<CompiledProtos, SchemaError> {
        Loader::new(self.folders.clone(), &self.texts).root(name, text)
    }
}

impl CompiledProtos {
    /// Reads the definitions of a `FileDescriptorSet` from protoc, buf or a recording. The input may be
    /// hostile.
    ///
    /// # Errors
    /// An exceeded limit of [`crate::limits`], bytes that are not a descriptor set, or a file with an
    /// edition.
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Self, SchemaError> {
        let set = schema::read_set(bytes)?;
        set.file.iter().try_for_each(canonical::check_syntax)?;
        canonical::message_names(&set)?;
        Ok(Self { file: None, set })
    }

    /// Full names of the message types in the file itself, without imports. For a descriptor set, all except
    /// those of protobuf.
    pub fn messages(&self) -> Vec<String> {
        let is_own = |name: &str| match &self.file {
            Some(file) => name == file,
            None => !name.starts_with("google/protobuf/"),
        };
        let own = self.set.file.iter().filter(|file| is_own(file.name())).cloned().collect();
        canonical::message_names(&FileDescriptorSet { file: own }).unwrap_or_default()
    }

    /// Full names of all message types, including those of imports.
    pub fn all_messages(&self) -> Vec<String> {
        canonical::message_names(&self.set).unwrap_or_default()
    }

    /// The schema of one message type. The package can be omitted if the name is unique.
    ///
    /// # Errors
    /// [`SchemaError::UnknownType`], or a limit.
    pub fn schema(&self, name: &str) -> Result<crate::Schema, SchemaError> {
        let known = self.all_messages();
        let behind_dot = |full: &&String| full.rsplit('.').next() == Some(name);
        let mut short = known.iter().filter(behind_dot);
        let full = match (known.iter().find(|full| *full == name), short.next(), short.next()) {
            (None, Some(one), None) => one,
            _ => name,
        };
        crate::Schema::from_set(&self.set, full)
    }

    /// All files as one `FileDescriptorSet`, imports first and with comments, for class generators of other
    /// languages.
    pub fn descriptor_set(&self) -> Vec<u8> {
        self.set.encode_to_vec()
    }
}

/// One run of the compiler.
struct Loader<'a> {
    folders: Vec<PathBuf>,
    texts: &'a [(String, String)],
    pool: DescriptorPool,
    done: HashSet<String>,
    /// Files whose imports are being read, starting with the root.
    import_stack: Vec<String>,
    files: usize,
}

impl<'a> Loader<'a> {
    fn new(folders: Vec<PathBuf>, texts: &'a [(String, String)]) -> Self {
        let (pool, done) = (DescriptorPool::new(), HashSet::new());
        Self { folders, texts, pool, done, import_stack: Vec::new(), files: 0 }
    }

    fn root(mut self, name: &str, text: &str) -> Result<CompiledProtos, SchemaError> {
        self.text(name, text)?;
        let mut file: Vec<_> = self.pool.file_descriptor_protos().cloned().collect();
        file.iter_mut().for_each(strip_uncommented);
        // The same limits as for a received set: each side accepts what the other can compile.
        let set = schema::read_set(&FileDescriptorSet { file }.encode_to_vec())?;
        Ok(CompiledProtos { file: Some(name.to_owned()), set })
    }

    fn text(&mut self, name: &str, text: &str) -> Result<(), SchemaError> {
        if text.len() > MAX_PROTO_LEN_BYTES {
            return Err(SchemaError::Limit {
                what: format!("length of {name} in bytes"),
                limit_name: "MAX_PROTO_LEN_BYTES",
                limit: MAX_PROTO_LEN_BYTES,
                found: text.len(),
            });
        }
        let file = protox_parse::parse(name, text).map_err(|error| {
            // Without a position, the file ended too early.
            let offset = error.span().map_or(text.len(), |span| span.start);
            let message = match names_an_edition(&text[offset.min(text.len())..]) {
                true => canonical::NO_EDITIONS.to_owned(),
                false => error.to_string(),
            };
            SchemaError::Proto { place: location_of(name, text, offset), message }
        })?;
        self.file(file)
    }

    /// Reads the imports of a file, then links the file.
    fn file(&mut self, file: FileDescriptorProto) -> Result<(), SchemaError> {
        self.files += 1;
        if self.files > MAX_SCHEMA_FILES {
            return Err(SchemaError::Limit {
                what: format!("number of files, at {}", file.name()),
                limit_name: "MAX_SCHEMA_FILES",
                limit: MAX_SCHEMA_FILES,
                found: self.files,
            });
        }
        self.import_stack.push(file.name().to_owned());
        for (i, import) in file.dependency.iter().enumerate() {
            if !self.done.contains(import) {
                self.import(import, import_location(&file, i))?;
            }
        }
        self.import_stack.pop();
        let name = file.name().to_owned();
        self.pool.add_file_descriptor_proto(file).map_err(|error| link_error(&name, &error))?;
        self.done.insert(name);
        Ok(())
    }

    fn import(&mut self, name: &str, place: SourceLocation) -> Result<(), SchemaError> {
        if let Some(at) = self.import_stack.iter().position(|open| open == name) {
            let mut cycle = self.import_stack[at..].to_vec();
            cycle.push(name.to_owned());
            return Err(SchemaError::CyclicImport { place, cycle });
        }
        // The parser rejects `..` and similar; an absolute path would leave the folders too.
        if !name.starts_with('/') {
            for folder in &self.folders {
                let path = folder.join(name);
                if path.is_file() {
                    let text = read_file(&path)?;
                    return self.text(name, &text);
                }
            }
        }
        if let Some((_, text)) = self.texts.iter().find(|(known, _)| known == name) {
            return self.text(name, text);
        }
        if let Some(text) = builtin::text(name) {
            return self.text(name, text);
        }
        if let Some(file) = DescriptorPool::global().get_file_by_name(name) {
            return self.file(file.file_descriptor_proto().clone());
        }
        let shown = |folder: &PathBuf| match folder.as_os_str().is_empty() {
            true => "the current directory".to_owned(),
            false => folder.display().to_string(),
        };
        let looked_in = match self.folders.is_empty() {
            true => vec!["no directory".to_owned()],
            false => self.folders.iter().map(shown).collect(),
        };
        Err(SchemaError::MissingImport { place, name: name.to_owned(), looked_in })
    }
}

/// Source positions are most of a compiled set; only those with comments are needed.
fn strip_uncommented(file: &mut FileDescriptorProto) {
    let Some(info) = &mut file.source_code_info else { return };
    info.location.retain(|l| l.leading_comments.is_some() || l.trailing_comments.is_some());
    for location in &mut info.location {
        location.leading_detached_comments.clear();
    }
}

fn read_file(path: &Path) -> Result<String, SchemaError> {
    let failed = |why: String| SchemaError::Read { path: path.display().to_string(), why };
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() {
        return Err(failed("it is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    let max = MAX_PROTO_LEN_BYTES as u64 + 1;
    file.take(max).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes)
        .map_err(|error| failed(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to())))
}

/// Whether the parser stopped at `edition = "2023"`, which it does not support.
fn names_an_edition(at: &str) -> bool {
    at.strip_prefix("edition").is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Line and column of a byte offset.
fn location_of(file: &str, text: &str, offset: usize) -> SourceLocation {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    SourceLocation { file: file.to_owned(), line, column }
}

/// The position of the import statement with this index.
fn import_location(file: &FileDescriptorProto, import: usize) -> SourceLocation {
    const FILE_DEPENDENCY: i32 = 3;
    let path = [FILE_DEPENDENCY, import as i32];
    let info = file.source_code_info.as_ref();
    let location = info.and_then(|info| info.location.iter().find(|l| l.path == path));
    let (line, column) = match location.map(|l| &*l.span) {
        Some([line, column, ..]) => (*line as usize + 1, *column as usize + 1),
        _ => (0, 0),
    };
    SourceLocation { file: file.name().to_owned(), line, column }
}

fn link_error(name: &str, error: &DescriptorError) -> SchemaError {
    let file = error.file().unwrap_or(name).to_owned();
    let (line, column) = match (error.line(), error.column()) {
        (Some(line), Some(column)) => (line + 1, column + 1),
        _ => (0, 0),
    };
    SchemaError::Proto { place: SourceLocation { file, line, column }, message: error.to_string() }
}
