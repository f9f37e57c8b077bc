//! Checks that constants with the same name have the same meaning. The number of exceptions only decreases.
//!
//! It checks constants at the top level of product files; the meaning is the type and the value.
//! `xtask/constants.txt` lists the names that had several meanings when this check was introduced. A further
//! such name fails, and so does a listed name that has only one meaning.

use crate::{Finding, SourceFile, syntax};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::Item;

/// The names that may have several meanings, one per line.
const LIST: &str = "xtask/constants.txt";

/// Compares the constants of all product files.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|f| f.path == LIST).and_then(SourceFile::text) else {
        return vec![Finding::new(LIST, "is missing")];
    };
    let listed: BTreeSet<&str> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let mut constants: BTreeMap<String, BTreeMap<String, &str>> = BTreeMap::new();
    for file in files.iter().filter(|f| is_product(&f.path)) {
        for (name, meaning) in file.text().map(read).unwrap_or_default() {
            constants.entry(name).or_default().entry(meaning).or_insert(&file.path);
        }
    }
    constants.retain(|_, meanings| meanings.len() > 1);
    let more = constants.iter().filter(|(name, _)| !listed.contains(name.as_str()));
    let more = more.map(|(name, meanings)| {
        let places: Vec<&str> = meanings.values().copied().collect();
        let text = format!(
            "has {} meanings: {}; give them different names",
            meanings.len(),
            places.join(", ")
        );
        Finding::new(format!("constant {name}"), text)
    });
    let fewer = listed.iter().filter(|name| !constants.contains_key(**name));
    let fewer = fewer.map(|name| Finding::new(LIST, format!("{name} has one meaning: remove it")));
    more.chain(fewer).collect()
}

fn is_product(path: &str) -> bool {
    let is_ours = path.starts_with("crates/") || path.starts_with("python/src/");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    let is_source = path.contains("/src/") && path.ends_with(".rs");
    is_ours && is_source && !is_test
}

/// The top-level constants of a file: name and meaning.
fn read(text: &str) -> Vec<(String, String)> {
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let constants = file.items.into_iter().filter_map(|item| match item {
        Item::Const(item) if !syntax::is_test(&item.attrs) && item.ident != "_" => Some(item),
        _ => None,
    });
    let meaning = |item: &syn::ItemConst| {
        format!("{} = {}", item.ty.to_token_stream(), item.expr.to_token_stream())
    };
    constants.map(|item| (item.ident.to_string(), meaning(&item))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(list: &str, sources: &[(&str, &str)]) -> Vec<String> {
        let files = std::iter::once((LIST, list)).chain(sources.iter().copied());
        let files: Vec<SourceFile> = files
            .map(|(path, text)| SourceFile { path: path.into(), bytes: text.into() })
            .collect();
        check(&files).into_iter().map(|f| format!("{}: {}", f.place, f.text)).collect()
    }

    const TWO: &[(&str, &str)] = &[
        ("crates/a/src/lib.rs", "const GRACE: u64 = 1;\nconst MAX: u64 = 3;"),
        ("crates/b/src/lib.rs", "pub const GRACE: u64 = 2;\nconst MAX: u64 = 3;"),
        ("crates/b/src/tests.rs", "const MAX: u64 = 4;"),
        ("crates/b/tests/it/main.rs", "const MAX: u64 = 5;"),
    ];

    #[test]
    fn one_name_with_two_values_fails_unless_it_is_listed() {
        let expected = "constant GRACE: has 2 meanings: crates/a/src/lib.rs, crates/b/src/lib.rs; give them different names";
        assert_eq!(findings("# names\n", TWO), [expected]);
        assert_eq!(findings("GRACE\n", TWO), [""; 0]);
    }

    #[test]
    fn a_listed_name_with_one_meaning_fails() {
        let expected = "xtask/constants.txt: MAX has one meaning: remove it";
        assert_eq!(findings("GRACE\nMAX\n", TWO), [expected]);
        assert_eq!(check(&[]).len(), 1);
    }
}
