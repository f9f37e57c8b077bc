//! Names of `.proto` files, as prost-build converts them to Rust.
//!
//! prost-build exports only its names of modules. If a type name differed between this module and
//! prost-build, the code would not compile, so a new version cannot break it silently.

use heck::ToUpperCamelCase;
use prost_build::Module;

/// Packages whose types are in `rnet::msgs`.
pub(crate) const BUILTIN_PACKAGES: [&str; 2] = ["foxglove", "rnet.msgs"];

/// The built-in files, by the start of their names, whose types are in a crate below `rnet`, which re-exports them. The
/// other ones are in `rnet` itself.
const BELOW_RNET: [(&str, &[&str]); 3] = [
    ("rnet-node", &["foxglove/Log.proto", "rnet/msgs/Clock.proto"]),
    ("rnet-call", &["rnet/msgs/Call", "rnet/msgs/Command"]),
    ("rnet-state", &["rnet/msgs/State"]),
];

/// The crate that has the types of a built-in file.
pub(crate) fn home_crate(file: &str) -> &'static str {
    let has = |starts: &&[&str]| starts.iter().any(|start| file.starts_with(start));
    BELOW_RNET.iter().find(|(_, starts)| has(starts)).map_or("rnet", |(name, _)| name)
}

/// A module or field: `snake_case`, and not a keyword.
pub(crate) fn snake(name: &str) -> String {
    let module = Module::from_protobuf_package_name(name);
    module.parts().collect::<Vec<_>>().join("::")
}

/// The name of a type.
pub(crate) fn camel(name: &str) -> String {
    match name.to_upper_camel_case() {
        // The only keyword in this form.
        word if word == "Self" => "Self_".into(),
        word if word.starts_with(|c: char| c.is_numeric()) => format!("_{word}"),
        word => word,
    }
}

/// Path of a message inside the module of its package, from its enclosing messages and its own name:
/// `plan::step::Kind`.
pub(crate) fn path(scopes: &[String]) -> String {
    let (own, outer) = match scopes {
        [outer @ .., own] => (camel(own), outer),
        [] => (String::new(), scopes),
    };
    let mut path: Vec<String> = outer.iter().map(|scope| snake(scope)).collect();
    path.push(own);
    path.join("::")
}

/// The module of `rnet` with the types of a built-in package.
pub(crate) fn builtin_module(package: &str) -> &'static str {
    match package {
        "foxglove" => "::rnet::msgs::foxglove",
        _ => "::rnet::msgs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_prost_build() {
        assert_eq!(snake("JointState"), "joint_state");
        assert_eq!(snake("type"), "r#type");
        assert_eq!(snake("self"), "self_");
        assert_eq!(camel("self"), "Self_");
        assert_eq!(camel("joint_state"), "JointState");
        assert_eq!(camel("HTTPServer"), "HttpServer");
        assert_eq!(camel("_3d"), "_3d");
        assert_eq!(path(&["Plan".into(), "type".into(), "kind_of".into()]), "plan::r#type::KindOf");
    }
}
