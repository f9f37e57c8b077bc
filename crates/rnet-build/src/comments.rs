//! Converts comments of `.proto` files to doc comments of Rust.
//!
//! They were not written for rustdoc, which would compile parts of them as code and run them as tests of the
//! user's crate. Therefore an indented line becomes plain text, and a code block gets the language `text`.

use prost_types::source_code_info::Location;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use std::collections::BTreeSet;

// Field numbers of google/protobuf/descriptor.proto, which form the path of a comment.
const FILE_MESSAGE: i32 = 4;
const FILE_ENUM: i32 = 5;
const MESSAGE_FIELD: i32 = 2;
const MESSAGE_NESTED: i32 = 3;
const MESSAGE_ENUM: i32 = 4;
const MESSAGE_ONEOF: i32 = 8;
const ENUM_VALUE: i32 = 2;

/// Gives each element of a file a location, as prost-build requires; rnet-schema keeps only those with a
/// comment.
pub(crate) fn add_locations(file: &mut FileDescriptorProto) {
    let mut paths = BTreeSet::new();
    for (i, message) in (0..).zip(&file.message_type) {
        message_paths(&[FILE_MESSAGE, i], message, &mut paths);
    }
    for (i, enumeration) in (0..).zip(&file.enum_type) {
        enum_paths(&[FILE_ENUM, i], enumeration, &mut paths);
    }
    let places = &mut file.source_code_info.get_or_insert_default().location;
    for place in places.iter() {
        paths.remove(&place.path);
    }
    places.extend(paths.into_iter().map(|path| Location { path, ..Default::default() }));
}

fn message_paths(own: &[i32], message: &DescriptorProto, paths: &mut BTreeSet<Vec<i32>>) {
    let below = |field: i32, i: i32| [own, &[field, i]].concat();
    paths.insert(own.to_vec());
    paths.extend((0..).zip(&message.field).map(|(i, _)| below(MESSAGE_FIELD, i)));
    paths.extend((0..).zip(&message.oneof_decl).map(|(i, _)| below(MESSAGE_ONEOF, i)));
    for (i, nested) in (0..).zip(&message.nested_type) {
        message_paths(&below(MESSAGE_NESTED, i), nested, paths);
    }
    for (i, enumeration) in (0..).zip(&message.enum_type) {
        enum_paths(&below(MESSAGE_ENUM, i), enumeration, paths);
    }
}

fn enum_paths(own: &[i32], enumeration: &EnumDescriptorProto, paths: &mut BTreeSet<Vec<i32>>) {
    paths.insert(own.to_vec());
    paths.extend((0..).zip(&enumeration.value).map(|(i, _)| [own, &[ENUM_VALUE, i]].concat()));
}

/// Sanitizes all comments of a file.
pub(crate) fn sanitize(file: &mut FileDescriptorProto) {
    for location in file.source_code_info.iter_mut().flat_map(|info| &mut info.location) {
        location.leading_detached_comments.clear();
        let comments = [&mut location.leading_comments, &mut location.trailing_comments];
        for text in comments.into_iter().flatten() {
            *text = sanitized(text);
        }
    }
}

/// Sanitizes one comment: each line starts with a space, as after `///`.
fn sanitized(comment: &str) -> String {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in comment.trim().lines() {
        // The lines of a block comment may start with a star.
        let text = match line.trim() {
            "*" => "",
            text => text.trim_start_matches("* "),
        };
        match (&open, fence(text)) {
            (None, Some(mark)) => {
                lines.push(format!("{mark}text"));
                open = Some(mark);
            }
            (Some(begun), Some(mark)) if mark.starts_with(begun.as_str()) && text == mark => {
                lines.push(mark);
                open = None;
            }
            (Some(_), _) => lines.push(line.replace('\r', " ")),
            // Leading spaces, also after a list marker, would make it code.
            (None, None) => lines.push(escaped(&words(text))),
        }
    }
    lines.extend(open);
    lines.iter().map(|line| format!(" {line}\n")).collect()
}

/// The marker of a line that starts or ends a code block.
fn fence(text: &str) -> Option<String> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let len = text.chars().take_while(|c| *c == mark).count();
    // Backticks that open and close on one line are inline code.
    let closes = mark == '`' && text[len..].contains('`');
    (len >= 3 && !closes).then(|| text[..len].to_owned())
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes a block that starts after the marker of a list or quotation.
fn escaped(text: &str) -> String {
    let mut rest = text;
    while let Some((mark, behind)) = rest.split_once(' ') {
        let is_list = matches!(mark, "-" | "*" | "+" | ">")
            || mark.trim_end_matches(['.', ')']).chars().all(|c| c.is_ascii_digit());
        if !is_list {
            break;
        }
        rest = behind;
    }
    let rest = rest.trim_start_matches('>');
    let before = &text[..text.len() - rest.len()];
    match fence(rest) {
        Some(_) => format!("{before}\\{rest}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn plain_comment_is_unchanged() {
        assert_eq!(sanitized(" Angle.\n Unit: rad\n"), " Angle.\n Unit: rad\n");
        assert_eq!(sanitized("*\n * Angle.\n * - a\n "), " \n Angle.\n - a\n");
    }

    #[test]
    fn indented_text_does_not_become_code() {
        let indented = " Use it so:\n\n     let x = panic!();\n\tpanic!()\n -     panic!()\n";
        let text = " Use it so:\n \n let x = panic!();\n panic!()\n - panic!()\n";
        assert_eq!(sanitized(indented), text);
    }

    #[test]
    fn code_blocks_are_text() {
        assert_eq!(
            sanitized("```rust\n  panic!()\n```\nEnd"),
            " ```text\n   panic!()\n ```\n End\n"
        );
        assert_eq!(sanitized("~~~~\n~~~\n"), " ~~~~text\n ~~~\n ~~~~\n");
        assert_eq!(sanitized("```\nopen"), " ```text\n open\n ```\n");
        assert_eq!(sanitized("- ```\n  panic!()\n  ```"), " - \\```\n panic!()\n ```text\n ```\n");
        assert_eq!(sanitized(">```rust\n> panic!()"), " >\\```rust\n > panic!()\n");
        assert_eq!(sanitized("```a``` is b"), " ```a``` is b\n");
    }
}
