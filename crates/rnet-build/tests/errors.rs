//! Errors for invalid files, and the output for valid ones.

use rnet_build::{BuildError, Config};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with `.proto` files, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("rnet-build-{}-{count}", std::process::id()));
        std::fs::create_dir_all(folder.join("out")).expect("creates the folder");
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().expect("in the folder"))
                .expect("creates the parent");
            std::fs::write(path, text).expect("writes the file");
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn compile(&self, config: Config, files: &[&str]) -> Result<Vec<PathBuf>, BuildError> {
        config.out_dir(self.path("out")).compile(files.iter().map(|name| self.path(name)))
    }

    fn error(&self, files: &[&str]) -> String {
        self.compile(Config::new(), files).expect_err("the files are wrong").to_string()
    }

    fn code(&self) -> String {
        std::fs::read_to_string(self.path("out/rnet_protos.rs")).expect("code was written")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn syntax_error_has_file_line_and_column() {
    let folder = Folder::new(&[
        ("good.proto", "syntax = \"proto3\";\nimport \"bad.proto\";\n"),
        ("bad.proto", "syntax = \"proto3\";\nmessage Plan {\n  double speed == 1;\n}\n"),
    ]);
    let path = folder.path("bad.proto").display().to_string();
    let error = folder.error(&["bad.proto"]);
    assert!(error.starts_with(&format!("cannot compile {path}: bad.proto:3:17: ")), "{error}");
    // Also if another file imports it.
    let error = folder.error(&["good.proto"]);
    assert!(error.contains("good.proto: bad.proto:3:17: "), "{error}");
    assert!(!folder.path("out/rnet_protos.rs").exists());
}

#[test]
fn missing_import_lists_searched_folders() {
    let text = "syntax = \"proto3\";\n\nimport \"rnet/msgs/JointStat.proto\";\n";
    let folder = Folder::new(&[("robot.proto", text)]);
    let error = folder.error(&["robot.proto"]);
    assert!(error.contains("robot.proto:3:1: import \"rnet/msgs/JointStat.proto\""), "{error}");
    assert!(error.contains(&folder.0.display().to_string()), "{error}");
}

#[test]
fn missing_file_is_reported() {
    let folder = Folder::new(&[]);
    let error = folder.error(&["robot.proto"]);
    assert!(error.contains("robot.proto") && error.contains("No such file"), "{error}");
}

#[test]
fn unknown_field_type_is_reported_with_position() {
    let text = "syntax = \"proto3\";\npackage a;\nmessage Plan {\n  Step first = 1;\n}\n";
    let folder = Folder::new(&[("robot.proto", text)]);
    let error = folder.error(&["robot.proto"]);
    assert!(error.contains("robot.proto:4:3: ") && error.contains("Step"), "{error}");
}

const MINE: &str = "syntax = \"proto3\"; package foxglove; message Pose { double x = 1; }";

#[test]
fn user_files_cannot_redefine_built_in_packages() {
    let user = "syntax = \"proto3\"; import \"foxglove/Pose.proto\"; message Plan { foxglove.Pose goal = 1; }";
    let folder = Folder::new(&[("foxglove/Pose.proto", MINE), ("robot.proto", user)]);
    let error = folder.error(&["robot.proto"]);
    assert!(error.contains("foxglove/Pose.proto defines foxglove.Pose differently"), "{error}");
    let more = "syntax = \"proto3\"; package rnet.msgs.more; enum E { A = 0; }";
    let folder = Folder::new(&[("more.proto", more)]);
    let error = folder.error(&["more.proto"]);
    assert!(error.contains("rnet.msgs.more.E"), "{error}");
}

/// Foxglove's own files, copied into a repository: the same types with other comments.
#[test]
fn a_copy_of_a_built_in_file_is_the_built_in_type() {
    let copy = "syntax = \"proto3\"; package foxglove; message Color { double r = 1; double g = 2; double b = 3; double a = 4; }";
    let user = "syntax = \"proto3\"; import \"foxglove/Color.proto\"; message Lamp { foxglove.Color color = 1; }";
    let folder = Folder::new(&[("foxglove/Color.proto", copy), ("lamp.proto", user)]);
    folder.compile(Config::new(), &["lamp.proto"]).expect("the type is the same");
    let code = folder.code();
    assert!(code.contains("Option<::rnet::msgs::foxglove::Color>"), "{code}");
    assert!(!code.contains("pub struct Color"), "{code}");
}

const PART: &str = "syntax = \"proto3\"; package a; message Part { bool on = 1; }";
const ROBOT: &str =
    "syntax = \"proto3\"; package a; import \"parts/part.proto\"; message Robot { Part part = 1; }";

#[test]
fn include_folder_resolves_a_file_with_two_names() {
    let folder = Folder::new(&[("p/robot.proto", ROBOT), ("p/parts/part.proto", PART)]);
    // The first folder, p, contains both.
    folder
        .compile(Config::new(), &["p/robot.proto", "p/parts/part.proto"])
        .expect("p/ is the folder");
    let config = Config::new().include(folder.path("p/parts"));
    let error = folder.compile(config, &["p/robot.proto", "p/parts/part.proto"]);
    let error = error.expect_err("a.Part is defined twice").to_string();
    assert!(error.contains("a.Part") && error.contains("add the include directory"), "{error}");
    let config = Config::new().include(folder.path("p"));
    folder.compile(config, &["p/robot.proto", "p/parts/part.proto"]).expect("one name");
}

#[test]
fn two_files_with_the_same_name_are_rejected() {
    let other = "syntax = \"proto3\"; package b; message Other {}";
    let folder = Folder::new(&[("x/part.proto", PART), ("y/part.proto", other)]);
    let error = folder.error(&["x/part.proto", "y/part.proto"]);
    assert!(error.contains("\"part.proto\"") && error.contains("y/part.proto"), "{error}");
}

#[test]
fn the_build_depends_on_every_file_that_was_read() {
    let folder = Folder::new(&[("p/robot.proto", ROBOT), ("q/parts/part.proto", PART)]);
    let config = Config::new().include(folder.path("q"));
    let read = folder.compile(config, &["p/robot.proto"]).expect("consistent files");
    assert_eq!(read, [folder.path("p/robot.proto"), folder.path("q/parts/part.proto")]);
    assert!(folder.path("out/rnet_protos/a.Part.bin").exists());
}

/// Unchanged files are not written, so that cargo recompiles nothing.
#[test]
fn the_same_files_give_the_same_code() {
    let folder = Folder::new(&[("p/robot.proto", ROBOT), ("p/parts/part.proto", PART)]);
    let modified = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).expect("there");
    let out = folder.path("out/rnet_protos.rs");
    folder.compile(Config::new(), &["p/robot.proto"]).expect("right");
    let (first, code) = (modified(&out), folder.code());
    folder.compile(Config::new(), &["p/robot.proto"]).expect("right");
    assert_eq!((modified(&out), folder.code()), (first, code));
}

#[test]
fn unwritable_folder_is_reported() {
    let folder = Folder::new(&[("part.proto", PART), ("file", "")]);
    let config = Config::new().out_dir(folder.path("file/out"));
    let error =
        config.compile([folder.path("part.proto")]).expect_err("a file has the folder's name");
    assert!(error.to_string().contains("file/out"), "{error}");
}

/// The limits of one type do not apply to a build, which may have any number of types.
#[test]
fn limits_apply_per_type_not_per_build() {
    let names: Vec<String> = (0..300).map(|n| format!("f{n}.proto")).collect();
    let texts: Vec<String> = (0..300)
        .map(|n| {
            let import = if n == 0 { "" } else { "import \"f0.proto\";" };
            format!("syntax = \"proto3\"; package p; {import} message M{n} {{ M0 first = 1; }}")
        })
        .collect();
    assert!(names.len() > rnet_schema::limits::MAX_SCHEMA_FILES);
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (&**name, &**text)).collect();
    let folder = Folder::new(&files);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    folder.compile(Config::new(), &names).expect("each type is small");
    assert!(folder.path("out/rnet_protos/p.M299.bin").exists());
    assert!(folder.code().contains("pub struct M299"));
}
