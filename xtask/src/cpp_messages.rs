//! `cargo xtask cpp-messages`: compares the C++ structs of the built-in messages with their `.proto` files, or
//! writes them.
//!
//! Each file has a header under cpp/include/rnet/msgs. A header has the structs, and for each a list of its
//! fields, by which cpp/include/rnet/detail/wire.hpp encodes and decodes it. The headers are checked in, so
//! that an installed copy needs no generator. The list of all messages for the tests has the length and the
//! hash of a filled message, encoded by prost-reflect.

mod header;
mod names;
mod reference;

use std::collections::BTreeMap;
use std::path::Path;

use rnet_schema::prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use rnet_schema::{builtin_files, compile_text};

use crate::generated::{self, GeneratedFile};
use crate::{Finding, Outcome, SourceFile, source_files};

const INCLUDE: &str = "cpp/include/";
const MESSAGES: &str = "cpp/include/rnet/msgs/";
const TEST_LIST: &str = "cpp/tests/message_types.hpp";
const COMMAND: &str = "cargo xtask cpp-messages --write";
const MARK: &str = "by `cargo xtask cpp-messages --write`; do not edit.";

/// The comments of `.proto` files, by full name.
type Comments = BTreeMap<String, String>;

/// Compares the headers with the messages, or writes them.
pub fn run(root: &Path, rest: &[String]) -> Option<Outcome> {
    let write = generated::is_write(rest)?;
    Some(generate().and_then(|files| {
        let mut findings = generated::update(root, &files, write, COMMAND)?;
        for path in orphans(&source_files(root)?, &files) {
            match write {
                true => {
                    std::fs::remove_file(root.join(&path)).map_err(|e| format!("{path}: {e}"))?
                }
                false => findings.push(Finding::new(
                    path,
                    format!("no .proto file has this header: run `{COMMAND}`"),
                )),
            }
        }
        let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
        Ok((format!("{} files, {} KiB", files.len(), bytes / 1024), findings))
    }))
}

/// Generated headers of the tree whose `.proto` file does not exist.
fn orphans(tree: &[SourceFile], files: &[GeneratedFile]) -> Vec<String> {
    let is_orphan = |file: &&SourceFile| {
        file.path.starts_with(MESSAGES)
            && file.text().is_some_and(|text| text.contains(MARK))
            && files.iter().all(|(path, _)| *path != file.path)
    };
    tree.iter().filter(is_orphan).map(|file| file.path.clone()).collect()
}

fn generate() -> Result<Vec<GeneratedFile>, String> {
    let imports = builtin_files().map(|file| format!("import \"{file}\";\n"));
    let all = format!("syntax = \"proto3\";\n{}", imports.collect::<String>());
    let compiled = compile_text("all.proto", &all).map_err(|e| e.to_string())?;
    let pool = DescriptorPool::decode(&*compiled.descriptor_set()).map_err(|e| e.to_string())?;
    let mut comments = Comments::new();
    for name in compiled.all_messages() {
        let schema = compiled.schema(&name).map_err(|e| e.to_string())?;
        comments.extend(schema.docs().iter().map(|(name, text)| (name.into(), text.into())));
    }
    let files = pool.files().filter(|file| builtin_files().any(|name| name == file.name()));
    let files: Vec<FileDescriptor> = files.collect();
    if files.is_empty() {
        return Err("found no built-in message, so nothing was checked".into());
    }
    let mut generated = Vec::new();
    let mut paths = Vec::new();
    for file in &files {
        let path = names::include_path(file.name());
        generated.push((format!("{INCLUDE}{path}"), header::header(file, &comments)?));
        paths.push(path);
    }
    paths.push("rnet/msgs/plain.hpp".to_owned());
    generated.push((format!("{MESSAGES}all.hpp"), all_header(&mut paths)));
    generated.push((TEST_LIST.to_owned(), test_list(&files)?));
    Ok(generated)
}

fn all_header(paths: &mut [String]) -> String {
    paths.sort();
    let includes = paths.iter().map(|path| format!("#include <{path}>\n"));
    format!(
        "// All built-in messages. Written {MARK}\n#pragma once\n\n{}",
        includes.collect::<String>()
    )
}

/// A message and all that are declared in it, the inner ones first.
fn with_nested(message: MessageDescriptor) -> Vec<MessageDescriptor> {
    let mut all: Vec<_> = message.child_messages().flat_map(with_nested).collect();
    all.push(message);
    all
}

/// The messages of a file, the inner ones first.
fn messages_of(file: &FileDescriptor) -> Vec<MessageDescriptor> {
    file.messages().flat_map(with_nested).collect()
}

fn test_list(files: &[FileDescriptor]) -> Result<String, String> {
    let mut list = format!(
        "// The built-in messages: type, name, and length and hash (FNV-1a) of a message that\n\
         // xtask/src/cpp_messages/reference.rs fills. Written {MARK}\n\
         #pragma once\n\n#define RNET_EACH_MESSAGE(X)"
    );
    for message in files.iter().flat_map(messages_of) {
        let (len, hash) = reference::len_and_hash(&message)?;
        let (of, name) = (names::full_type(&message)?, message.full_name());
        list += &format!(" \\\n    X({of}, \"{name}\", {len}, {hash:#018x})");
    }
    Ok(list + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_without_a_proto_file_are_found() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        let marked = format!("// Written {MARK}\n");
        let tree = [
            file("cpp/include/rnet/msgs/Gone.hpp", &marked),
            file("cpp/include/rnet/msgs/Imu.hpp", &marked),
            file("cpp/include/rnet/msgs/time.hpp", "// By hand.\n"),
        ];
        let files = [("cpp/include/rnet/msgs/Imu.hpp".to_owned(), marked.clone())];
        assert_eq!(orphans(&tree, &files), ["cpp/include/rnet/msgs/Gone.hpp"]);
    }

    #[test]
    fn every_built_in_file_has_a_header() {
        let files = generate().expect("the built-in messages can be expressed");
        assert_eq!(files.len(), builtin_files().count() + 2);
        let scan = files.iter().find(|(path, _)| path.ends_with("/foxglove/LaserScan.hpp"));
        let (_, text) = scan.expect("it is built in");
        for part in [
            "    /// Direction of the first beam. Unit: rad\n    double start_angle = 0;\n",
            "    std::optional<Timestamp> timestamp{};\n",
            "        visit(Field<6>(), &M::ranges);\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
