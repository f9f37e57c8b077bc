//! Why there is no code.

use rnet_schema::SchemaError;
use std::path::PathBuf;

/// Why no Rust types were generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A `.proto` file cannot be read, does not parse, or does not fit together with the others.
    #[error("cannot compile {}: {error}", file.display())]
    Schema {
        /// The file that was to be compiled; the error may be in one that it imports.
        file: PathBuf,
        /// What is wrong, and where.
        error: SchemaError,
    },
    /// A type of the files cannot be described to others.
    #[error("cannot describe message type {name}: {error}")]
    Type {
        /// Full name of the message.
        name: String,
        /// What is wrong.
        error: SchemaError,
    },
    /// Two files have one name, or two files define one type.
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
    /// A file defines a type of a built-in package other than robot-net does.
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
    /// prost-build refused.
    #[error("cannot generate Rust code: {why}")]
    Generate {
        /// What it said.
        why: String,
    },
    /// The code cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// There is no place for the code.
    #[error("OUT_DIR is not set: run rnet-build in a build script, or set Config::out_dir")]
    NoOutDir,
}
