//! Errors of the code generation.

use rnet_schema::SchemaError;
use std::path::PathBuf;

/// Why no Rust types were generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A `.proto` file cannot be read, does not parse, or is inconsistent with the others.
    #[error("cannot compile {}: {error}", file.display())]
    Schema {
        /// The compiled file; the error may be in one of its imports.
        file: PathBuf,
        /// The fault and its position.
        error: SchemaError,
    },
    /// A type of the files cannot be described to peers.
    #[error("cannot describe message type {name}: {error}")]
    Type {
        /// Full name of the message.
        name: String,
        /// The fault.
        error: SchemaError,
    },
    /// Two files have the same name, or two files define the same type.
    #[error(
        "{what} is defined by {first} and by {second}; if they are the same file, add the include directory to which all imports are relative"
    )]
    Duplicate {
        /// The file or type.
        what: String,
        /// One file.
        first: String,
        /// The other file.
        second: String,
    },
    /// A file defines a type of a built-in package differently from robot-net.
    #[error(
        "{file} defines {name} differently from robot-net; packages {packages} belong to robot-net: omit the file, or rename the package"
    )]
    BuiltIn {
        /// The file.
        file: String,
        /// Full name of the type.
        name: String,
        /// The packages.
        packages: String,
    },
    /// prost-build reports an error.
    #[error("cannot generate Rust code: {why}")]
    Generate {
        /// Its message.
        why: String,
    },
    /// The generated code cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The output directory is not known.
    #[error("OUT_DIR is not set: run rnet-build in a build script, or set Config::out_dir")]
    NoOutDir,
}
