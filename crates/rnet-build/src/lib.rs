//! Generates Rust types from `.proto` files in a build script, with one line and without protoc.
//!
//! ```no_run
//! // fn main of build.rs
//! rnet_build::protos(["proto/robot.proto"]);
//! ```
//!
//! ```ignore
//! // main.rs or lib.rs
//! rnet::include_protos!(); // a module for each package: `my::robot::Plan`
//! ```
//!
//! The types are those of prost; `rnet` re-exports prost, so the user's crate does not depend on it. Each
//! message type also implements `rnet::Message`, so that `node.publisher::<my::robot::Plan>("/plan").open()`
//! works, and contains its descriptor set with comments, which is sent to peers. Imports are searched in the
//! folders of the files, in the include folders, and among the built-in files, whose types are those of
//! `rnet::msgs`.
#![forbid(unsafe_code)]

mod comments;
mod error;
mod generate;
mod names;
mod sources;

pub use error::BuildError;

use std::path::{Path, PathBuf};

/// Name of the file in `OUT_DIR` that `rnet::include_protos!` reads.
const INCLUDE_FILE: &str = "rnet_protos.rs";

/// Generates the Rust types of these `.proto` files for `rnet::include_protos!()`. Call it in `fn main` of a
/// build script.
///
/// Paths are relative to the directory of `Cargo.toml`. The include directories are those of the files, in
/// the given order; for others, use [`Config`]. Cargo runs the script again when one of the files or their
/// imports changes.
///
/// On an error, it prints the file, line and column, and the build exits with status 1.
pub fn protos(files: impl IntoIterator<Item = impl AsRef<Path>>) {
    Config::new().protos(files);
}

/// As [`protos`], with include folders.
///
/// ```no_run
/// rnet_build::Config::new().include("proto").include("../common/proto").protos(["proto/robot.proto"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Config {
    includes: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
}

impl Config {
    /// A configuration without include folders.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an include directory for imports. The name of a compiled file is its path relative to the
    /// first directory that contains it.
    pub fn include(mut self, folder: impl Into<PathBuf>) -> Self {
        self.includes.push(folder.into());
        self
    }

    /// Writes to this folder instead of `OUT_DIR`.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(folder.into());
        self
    }

    /// As the function [`protos`].
    pub fn protos(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) {
        match self.compile(files) {
            Ok(read) => {
                for file in read {
                    println!("cargo::rerun-if-changed={}", file.display());
                }
            }
            Err(error) => {
                // Cargo reads a message up to the end of the line.
                println!("cargo::error={}", error.to_string().replace('\n', " "));
                std::process::exit(1);
            }
        }
    }

    /// Generates the code, and returns the files that were read, as dependencies of the build. Prints
    /// nothing.
    ///
    /// # Errors
    /// [`BuildError`]: for a fault in a `.proto` file, with the file, line and column.
    pub fn compile(
        &self,
        files: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Vec<PathBuf>, BuildError> {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_owned()).collect();
        let out_dir = match &self.out_dir {
            Some(folder) => folder.clone(),
            None => std::env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?.into(),
        };
        let sources = sources::read(&files, &self.includes)?;
        let own = sources::own_files(&sources.set)?;
        let messages = generate::messages(&sources.set, &own)?;
        let code = generate::user_code(&sources.set, &messages)?;
        generate::write_sets(&out_dir, &messages)?;
        generate::write(&out_dir.join(INCLUDE_FILE), code.as_bytes())?;
        Ok(sources.read)
    }
}

/// For the build scripts of `rnet` and of the crates below it: one file of code for each package of the built-in messages,
/// `foxglove.rs` and `rnet.msgs.rs`, with those messages whose types the crate has. Generated code names these crates
/// `::rnet`, so they do so themselves.
#[doc(hidden)]
pub fn builtin_protos() {
    // The built-in files are part of a crate that this one is built with: cargo sees to them.
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(error) = compile_builtin() {
        println!("cargo::error={error}");
        std::process::exit(1);
    }
}

fn compile_builtin() -> Result<(), BuildError> {
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(BuildError::NoOutDir)?);
    let home = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let set = sources::builtin()?;
    let own: Vec<String> = rnet_schema::builtin_files()
        .filter(|file| names::home_crate(file) == home)
        .map(str::to_owned)
        .collect();
    let messages = generate::messages(&set, &own)?;
    generate::write_sets(&out_dir, &messages)?;
    for package in names::BUILTIN_PACKAGES {
        let code = generate::package_code(&set, package, &own, &messages)?;
        generate::write(&out_dir.join(format!("{package}.rs")), code.as_bytes())?;
    }
    Ok(())
}
