//! The built-in messages follow the conventions of docs/guide/messages.md: all of them compile, everything
//! has a comment, every quantity has a unit, and messages of `rnet.msgs` are extensible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use prost_types::FileDescriptorProto;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto};

// Includes the file itself, so that this test is independent of the crate's public interface.
#[path = "../../src/builtin.rs"]
mod table;

/// Vectors without a unit: the enclosing field determines it.
const VECTORS: &[&str] = &["foxglove.Vector2", "foxglove.Vector3", "foxglove.Point2"];

/// The components of those vectors have this in place of a unit.
const INHERITED_UNIT: &str = "as the field that holds it";

/// Messages of `rnet.msgs` without a timestamp: parts of others, the time itself, and messages about a call
/// or the state, which refer to their send time only.
const UNSTAMPED: &[&str] = &[
    "Twist",
    "Wrench",
    "Clock",
    "CallControl",
    "CallStatus",
    "CommandReply",
    "CommandRequest",
    "CommandStatus",
    "StateAsk",
    "StateChange",
    "StateEntry",
    "StateReply",
];

/// The allowed units, each with its SI meaning known to every reader (REP-103).
const UNITS: &[&str] = &[
    "1", "m", "s", "kg", "A", "rad", "deg", "degC", "Hz", "N", "Pa", "W", "C", "V", "T", "lx",
    "px", "B", "ns",
];

/// The built-in files, each parsed separately: type names are as written.
fn parsed() -> Vec<FileDescriptorProto> {
    let parse = |path| {
        let text = table::text(path).expect("the table finds what it lists");
        protox_parse::parse(path, text).unwrap_or_else(|error| panic!("{path}: {error:?}"))
    };
    table::builtin_files().map(parse).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A declaration with a comment: a message, an enum, a value or a field.
struct Item<'a> {
    name: String,
    comment: String,
    what: ItemKind<'a>,
}

enum ItemKind<'a> {
    Message,
    Enum(&'a EnumDescriptorProto),
    Value,
    Field(&'a FieldDescriptorProto),
}

/// All declarations of a file with their comments; paths as in `SourceCodeInfo`.
fn items(file: &FileDescriptorProto) -> Vec<Item<'_>> {
    fn enumeration<'a>(
        of: &'a EnumDescriptorProto,
        (name, path): (String, Vec<i32>),
        into: &mut Vec<(String, Vec<i32>, ItemKind<'a>)>,
    ) {
        for (i, value) in (0..).zip(&of.value) {
            let path = [&path[..], &[2, i]].concat();
            into.push((format!("{name}.{}", value.name()), path, ItemKind::Value));
        }
        into.push((name, path, ItemKind::Enum(of)));
    }
    fn message<'a>(
        of: &'a DescriptorProto,
        (name, path): (String, Vec<i32>),
        into: &mut Vec<(String, Vec<i32>, ItemKind<'a>)>,
    ) {
        let inner =
            |kind: i32, i: i32, n: &str| (format!("{name}.{n}"), [&path[..], &[kind, i]].concat());
        for (i, field) in (0..).zip(&of.field) {
            let (name, path) = inner(2, i, field.name());
            into.push((name, path, ItemKind::Field(field)));
        }
        for (i, nested) in (0..).zip(&of.nested_type) {
            message(nested, inner(3, i, nested.name()), into);
        }
        for (i, nested) in (0..).zip(&of.enum_type) {
            enumeration(nested, inner(4, i, nested.name()), into);
        }
        into.push((name, path, ItemKind::Message));
    }

    let mut found = Vec::new();
    for (i, of) in (0..).zip(&file.message_type) {
        message(of, (format!("{}.{}", file.package(), of.name()), vec![4, i]), &mut found);
    }
    for (i, of) in (0..).zip(&file.enum_type) {
        enumeration(of, (format!("{}.{}", file.package(), of.name()), vec![5, i]), &mut found);
    }
    let comments: BTreeMap<&[i32], &str> = file
        .source_code_info
        .iter()
        .flat_map(|info| &info.location)
        .filter_map(|l| Some((&l.path[..], l.leading_comments.as_deref()?)))
        .collect();
    let mut items = Vec::new();
    for (name, path, what) in found {
        let comment = comments.get(&path[..]).copied().unwrap_or_default();
        let comment = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        items.push(Item { name, comment, what });
    }
    items
}

/// The text and the unit of a comment: the unit is at its end, after `Unit: `.
fn unit_of(comment: &str) -> Option<&str> {
    comment.split_once("Unit: ").map(|(_, unit)| unit)
}

/// `N*m/rad or 1`: alternatives of products and quotients of powers of known units.
fn is_unit(text: &str) -> bool {
    let is_power = |text: &str| {
        let (unit, power) = text.split_once('^').unwrap_or((text, "2"));
        UNITS.contains(&unit) && power.parse().is_ok_and(|p: u8| (2..=9).contains(&p))
    };
    text.split(" or ").all(|alternative| alternative.split(['*', '/']).all(is_power))
}

fn needs_unit(field: &FieldDescriptorProto) -> bool {
    // Type names are not resolved here: one may be `Vector3` or `foxglove.Vector3`.
    let is = |vector: &str| vector.rsplit('.').next() == field.type_name().rsplit('.').next();
    match field.r#type {
        None => VECTORS.iter().any(|vector| is(vector)),
        Some(_) => !matches!(field.r#type(), Type::String | Type::Bytes | Type::Bool | Type::Group),
    }
}

/// The fault of a declaration's comment.
fn complaint(item: &Item<'_>) -> Option<String> {
    if item.comment.len() < 4 {
        return Some("has no comment".into());
    }
    let unit = unit_of(&item.comment);
    let wanted = matches!(item.what, ItemKind::Field(field) if needs_unit(field));
    let of_vector = VECTORS.iter().any(|v| item.name.starts_with(&format!("{v}.")));
    match unit {
        None if wanted => Some("is a quantity without `Unit: …` at the end of its comment".into()),
        Some(unit) if !wanted => Some(format!("is not a quantity, but has the unit `{unit}`")),
        Some(INHERITED_UNIT) if of_vector => None,
        Some(unit) if !is_unit(unit) => Some(format!("has the unknown unit `{unit}`")),
        _ => None,
    }
}

#[test]
fn the_table_has_every_file_of_the_folder() {
    fn walk(folder: &Path, root: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the folder exists") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                walk(&path, root, into);
            } else {
                let name = path.strip_prefix(root).expect("it lies within").to_string_lossy();
                into.push(name.into_owned());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("msgs");
    let mut folder = Vec::new();
    walk(&root, &root, &mut folder);
    folder.sort_unstable();
    let table: Vec<&str> = table::builtin_files().collect();
    assert_eq!(table, folder, "src/builtin.rs lists the files of msgs/, in order");
}

#[test]
fn a_file_can_import_all_of_them() {
    let mut text = String::from("syntax = \"proto3\";\n");
    for path in table::builtin_files() {
        text += &format!("import \"{path}\";\n");
    }
    text += "message Robot {\n";
    for (number, path) in (1..).zip(table::builtin_files()) {
        let ty = path.strip_suffix(".proto").expect("a file of messages").replace('/', ".");
        text += &format!("  {ty} f{number} = {number};\n");
    }
    text += "}\n";
    let compiled = rnet_schema::compile_text("robot.proto", &text).expect("all of them compile");
    assert_eq!(compiled.messages(), ["Robot"]);
    compiled.schema("Robot").expect("its types are all there, and within the limits");
}

#[test]
fn everything_has_a_comment_and_every_quantity_a_unit() {
    let files = parsed();
    assert_eq!(files.len(), table::builtin_files().count());
    let mut units = 0;
    let mut complaints = Vec::new();
    for item in files.iter().flat_map(items) {
        units += usize::from(unit_of(&item.comment).is_some());
        complaints.extend(complaint(&item).map(|text| format!("{} {text}", item.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(units > 100, "only {units} units were found");
}

#[test]
fn each_file_is_one_message_of_its_name() {
    for file in parsed() {
        assert_eq!(file.syntax(), "proto3", "{}", file.name());
        let [message] = &file.message_type[..] else {
            panic!("{}: {} messages", file.name(), file.message_type.len());
        };
        let path = format!("{}/{}.proto", file.package().replace('.', "/"), message.name());
        assert_eq!(file.name(), path);
        assert!(file.enum_type.is_empty(), "{}: its enums belong into the message", file.name());
    }
}

#[test]
fn rnet_messages_start_alike_and_are_extensible() {
    let mut ours = 0;
    for file in parsed().iter().filter(|f| f.package() == "rnet.msgs") {
        let message = &file.message_type[0];
        let field = |name: &str| message.field.iter().find(|f| f.name() == name);
        ours += 1;
        if !UNSTAMPED.contains(&message.name()) {
            let Some(stamp) = field("timestamp") else {
                panic!("{} has no timestamp", message.name());
            };
            assert_eq!(stamp.number(), 1, "{}", message.name());
            assert_eq!(stamp.type_name(), "google.protobuf.Timestamp", "{}", message.name());
            let second = message.field.iter().find(|f| f.number() == 2).map(|f| f.name());
            assert_eq!(second, field("frame_id").map(|f| f.name()), "{}", message.name());
        }
        for item in items(file) {
            match item.what {
                ItemKind::Enum(of) => unspecified_is_zero(&item.name, of),
                ItemKind::Field(field) => {
                    assert_ne!(field.label(), Label::Required, "{}", item.name);
                }
                ItemKind::Message | ItemKind::Value => {}
            }
        }
    }
    assert!(ours > 0, "the package rnet.msgs has no messages");
}

/// Old or empty messages contain zero, so it must mean "unspecified".
fn unspecified_is_zero(name: &str, of: &EnumDescriptorProto) {
    let mut prefix = String::new();
    for c in of.name().chars() {
        if c.is_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(c.to_ascii_uppercase());
    }
    assert_eq!(of.value[0].name(), format!("{prefix}_UNSPECIFIED"), "{name}");
    assert_eq!(of.value[0].number(), 0, "{name}");
    for value in &of.value {
        assert!(value.name().starts_with(&format!("{prefix}_")), "{name}.{}", value.name());
    }
}

/// First cells of the page's table rows for the messages of a package.
fn listed(page: &str, package: &str) -> Vec<String> {
    let name = |line: &str| {
        let cell = line.strip_prefix("| `")?.split('`').next()?;
        cell.strip_prefix(package)?.strip_prefix('.').map(str::to_owned)
    };
    page.lines().filter_map(name).collect()
}

#[test]
fn the_guide_lists_each_message_once() {
    let page = std::fs::read_to_string(repository().join("docs/guide/messages.md"))
        .expect("the guide exists");
    for package in ["foxglove", "rnet.msgs"] {
        let listed = listed(&page, package);
        let there: BTreeSet<String> = parsed()
            .iter()
            .filter(|f| f.package() == package)
            .map(|f| f.message_type[0].name().to_owned())
            .collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), there, "{package}");
        assert_eq!(listed.len(), there.len(), "{package}: a message is listed twice");
    }
}

#[test]
fn unit_is_parsed_strictly() {
    for good in ["m", "1", "rad or m", "N*m/rad or N/m", "m^2/s^4", "rad^2/s^2"] {
        assert!(is_unit(good), "{good}");
    }
    for bad in ["", "m.", "metres", "m ", "m^1", "m^", "m^-2", "rad, m", "m/", "or m", "M"] {
        assert!(!is_unit(bad), "{bad}");
    }
    assert_eq!(unit_of("Angle of each joint. Unit: rad or m"), Some("rad or m"));
    assert_eq!(unit_of("The unit of something."), None);
}
