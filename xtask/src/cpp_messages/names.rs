//! Names in C++ of files, messages, fields and values of enums.

use rnet_schema::prost_reflect::{EnumDescriptor, FieldDescriptor, MessageDescriptor};

/// Keywords that could be the name of a field, or of a value in lower case.
const KEYWORDS: &[&str] = &[
    "and",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
];

/// The header of a built-in file, as programs include it: the names of its types with `/` for `::`.
pub fn include_path(proto: &str) -> String {
    let stem = proto.strip_suffix(".proto").unwrap_or(proto);
    format!("rnet/msgs/{}.hpp", stem.strip_prefix("rnet/msgs/").unwrap_or(stem))
}

/// The namespace of a package.
pub fn namespace(package: &str) -> Result<&'static str, String> {
    match package {
        "rnet.msgs" | "google.protobuf" => Ok("rnet::msgs"),
        "foxglove" => Ok("rnet::msgs::foxglove"),
        other => {
            Err(format!("the package {other} has no namespace in xtask/src/cpp_messages/names.rs"))
        }
    }
}

/// A type within the namespace of its package. Nested types are declared before the outer one, as
/// `LinkStatus_Peer`, because an outer struct is incomplete while its own members are declared.
pub fn flat(package: &str, full_name: &str) -> String {
    full_name[package.len()..].trim_start_matches('.').replace('.', "_")
}

/// `::`-separated full name of a message.
pub fn full_type(message: &MessageDescriptor) -> Result<String, String> {
    let package = message.package_name();
    Ok(format!("{}::{}", namespace(package)?, flat(package, message.full_name())))
}

/// The name of a type of `package` as the struct with this field writes it.
pub fn type_in(field: &FieldDescriptor, package: &str, full_name: &str) -> Result<String, String> {
    let parent = field.parent_message();
    if let Some(nested) =
        full_name.strip_prefix(parent.full_name()).and_then(|s| s.strip_prefix('.'))
    {
        return Ok(nested.to_owned());
    }
    let name = flat(package, full_name);
    let (from, home) = (namespace(parent.package_name())?, namespace(package)?);
    Ok(match home.strip_prefix(from).filter(|below| !below.is_empty()) {
        Some(below) => format!("{}::{name}", below.trim_start_matches("::")),
        // The same namespace or an enclosing one.
        None => name,
    })
}

/// The name of a field.
pub fn member(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// The values of an enum in lower case, without the name of the enum as their prefix: number, name in
/// protobuf, name in C++.
pub fn values(of: &EnumDescriptor) -> Vec<(i32, String, String)> {
    let prefix = upper_snake(of.name()) + "_";
    let short = |name: &str| {
        let rest = name.strip_prefix(&prefix)?;
        (!rest.starts_with(|c: char| c.is_ascii_digit())).then(|| rest.to_owned())
    };
    let is_prefixed = of.values().all(|value| short(value.name()).is_some());
    let name = |full: &str| match short(full) {
        Some(short) if is_prefixed => member(&short.to_lowercase()),
        _ => member(&full.to_lowercase()),
    };
    of.values().map(|value| (value.number(), value.name().into(), name(value.name()))).collect()
}

fn upper_snake(camel: &str) -> String {
    let mut snake = String::new();
    for c in camel.chars() {
        if c.is_uppercase() && snake.ends_with(|before: char| !before.is_uppercase()) {
            snake.push('_');
        }
        snake.push(c);
    }
    snake.to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_path_of_their_types() {
        assert_eq!(include_path("foxglove/Pose.proto"), "rnet/msgs/foxglove/Pose.hpp");
        assert_eq!(include_path("rnet/msgs/Imu.proto"), "rnet/msgs/Imu.hpp");
    }

    #[test]
    fn keywords_get_an_underscore() {
        assert_eq!((member("default"), member("d")), ("default_".to_owned(), "d".to_owned()));
        assert_eq!(upper_snake("PositionCovarianceType"), "POSITION_COVARIANCE_TYPE");
    }
}
