//! Checks the licences of foreign packages, from the output of `cargo metadata`.

use crate::Finding;
use serde_json::Value;

/// Licences that allow distribution under MIT or Apache-2.0, in source and as a program.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "IJG",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages with another licence, and why it is allowed: package, licence, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("cbindgen", "MPL-2.0", "a tool of xtask; no program contains it"),
    ("option-ext", "MPL-2.0", "part of the comparison (bench), which is not released"),
];

/// Checks each foreign package.
pub fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let foreign = packages.filter(|package| !package["source"].is_null());
    foreign
        .filter_map(|package| {
            let name = package["name"].as_str().unwrap_or_default();
            let licence = package["license"].as_str().unwrap_or_default();
            let excepted = EXCEPTIONS.iter().any(|e| e.0 == name && e.1 == licence);
            let text = format!("licence {licence:?} is not in xtask/src/audit/licences.rs");
            (!excepted && !is_allowed(licence)).then(|| Finding::new(name, text))
        })
        .collect()
}

/// Evaluates an SPDX expression; old packages have `/` for `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = expression.split_whitespace().peekable();
    any(&mut words) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words) -> bool {
    let mut allowed = all(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all(words);
    }
    allowed
}

fn all(words: &mut Words) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut Words) -> bool {
    if words.next_if_eq(&"(").is_some() {
        return any(words) & words.next_if_eq(&")").is_some();
    }
    let mut licence = words.next().unwrap_or_default().to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        licence = format!("{licence} WITH {}", words.next().unwrap_or_default());
    }
    ALLOWED.contains(&licence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_are_evaluated() {
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "MIT OR GPL-3.0 AND GPL-2.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(licence), "{licence}");
        }
        for licence in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND GPL-2.0",
            "MIT WITH GPL-exception",
            "(MIT",
            "MIT)",
            "MIT MIT",
        ] {
            assert!(!is_allowed(licence), "{licence}");
        }
    }

    #[test]
    fn each_foreign_package_needs_an_allowed_licence() {
        let of = |name: &str, licence: Value, source: Value| {
            check(&json!({"packages": [{"name": name, "license": licence, "source": source}]}))
                .len()
        };
        assert_eq!(of("a", json!("MIT"), json!("registry")), 0);
        assert_eq!(of("a", json!("GPL-3.0"), json!("registry")), 1);
        assert_eq!(of("a", Value::Null, json!("registry")), 1);
        assert_eq!(of("own", Value::Null, Value::Null), 0);
        assert_eq!(of("cbindgen", json!("MPL-2.0"), json!("registry")), 0);
        assert_eq!(of("other", json!("MPL-2.0"), json!("registry")), 1);
    }
}
