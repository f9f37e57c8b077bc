use super::*;
use serde_json::json;

/// A type parameter or primitive type of this name.
fn ty(name: &str) -> Value {
    json!({ "primitive": name })
}

fn generics() -> Value {
    json!({ "params": [], "where_predicates": [] })
}

fn item(name: &str, inner: Value) -> Value {
    json!({ "name": name, "attrs": [], "deprecation": null, "inner": inner })
}

fn function(inputs: Value, output: Value, has_body: bool) -> Value {
    let header = json!({ "is_const": false, "is_unsafe": false, "is_async": false, "abi": "Rust" });
    let sig = json!({ "inputs": inputs, "output": output, "is_c_variadic": false });
    json!({ "function": { "sig": sig, "generics": generics(), "header": header, "has_body": has_body } })
}

fn module(items: Value) -> Value {
    json!({ "module": { "items": items } })
}

/// `rnet` with its own function and `pub use rnet_core::Error`, and `rnet-core` with `Error::code`.
fn crates(code: Value, format: u64) -> BTreeMap<String, Crate> {
    let used = json!({ "use": { "source": "rnet_core::Error", "name": "Error", "id": 2, "is_glob": false } });
    let foreign =
        json!({ "use": { "source": "prost::Message", "name": "M", "id": 9, "is_glob": false } });
    let rnet = json!({
        "format_version": format, "root": 0,
        "index": {
            "0": item("rnet", module(json!([3, 1, 4]))),
            "1": item("", used),
            "3": item("now_ns", function(json!([]), ty("u64"), true)),
            "4": item("", foreign),
        },
        "paths": { "2": { "crate_id": 5, "path": ["rnet_core", "error", "Error"], "kind": "struct" } },
        "external_crates": { "5": { "name": "rnet_core" } },
    });
    let error = json!({ "struct": { "kind": "unit", "generics": generics(), "impls": [7] } });
    let block = json!({ "impl": {
        "trait": null, "is_synthetic": false, "blanket_impl": null, "is_unsafe": false, "is_negative": false,
        "generics": generics(), "items": [8],
        "for": { "resolved_path": { "path": "Error", "id": 6, "args": null } },
    } });
    let core = json!({
        "format_version": format, "root": 0,
        "index": { "6": item("Error", error), "7": item("", block), "8": item("code", code) },
        "paths": { "6": { "crate_id": 0, "path": ["rnet_core", "error", "Error"], "kind": "struct" } },
        "external_crates": {},
    });
    let all = [("rnet", rnet), ("rnet_core", core)];
    all.map(|(name, json)| (name.to_owned(), Crate::new(json))).into()
}

fn code(output: &str) -> Value {
    function(
        json!([["self", { "borrowed_ref": { "lifetime": null, "is_mutable": false, "type": { "generic": "Self" } } }]]),
        ty(output),
        true,
    )
}

#[test]
fn re_exports_are_listed_with_their_items() {
    let found = listing(&crates(code("str"), FORMAT));
    let lines = [
        "pub fn rnet::now_ns() -> u64",
        "pub struct rnet::Error",
        "impl rnet::Error",
        "pub fn rnet::Error::code(&self) -> str",
        "pub use rnet::M = prost::Message",
    ];
    assert_eq!(found.unwrap(), lines);
}

#[test]
fn changed_signature_in_another_crate_is_a_finding() {
    let of = |output: &str| listing(&crates(code(output), FORMAT)).unwrap();
    let (before, now) = (of("str"), of("u32"));
    let text = |lines: &[String]| -> Vec<Finding> {
        differences(
            &before.iter().map(String::as_str).collect::<Vec<_>>(),
            &lines.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    assert_eq!(text(&before), []);
    let found = text(&now);
    assert_eq!(found.len(), 1);
    let said = &found[0].text;
    assert!(
        said.contains(
            "\n- pub fn rnet::Error::code(&self) -> str\n+ pub fn rnet::Error::code(&self) -> u32\n"
        ),
        "{said}"
    );
    assert!(said.contains("cargo xtask api --write"), "{said}");
}

#[test]
fn added_and_removed_items_are_findings() {
    let found = |before: &[&str], now: &[&str]| differences(before, now).remove(0).text;
    assert!(found(&["a", "b", "c"], &["a", "c"]).contains(":\n- b\nIf"));
    assert!(found(&["a", "c"], &["a", "b", "c"]).contains(":\n+ b\nIf"));
    assert!(found(&[], &["a"]).contains(":\n+ a\nIf"));
}

#[test]
fn unknown_json_is_an_error() {
    let unknown = function(json!([]), json!({ "new_kind": {} }), true);
    assert!(listing(&crates(unknown, FORMAT)).unwrap_err().contains("new_kind"));
}

#[test]
fn another_format_is_an_error() {
    assert!(
        crates(code("str"), FORMAT).values().all(|described| other_format(described).is_none())
    );
    assert!(
        crates(code("str"), FORMAT + 1).values().all(|described| other_format(described).is_some())
    );
}

#[test]
fn hidden_items_are_omitted_and_items_of_hidden_modules_are_listed() {
    let mut hidden = code("str");
    assert!(listing(&crates(hidden.clone(), FORMAT)).unwrap().len() == 5);
    hidden = json!({ "name": "code", "attrs": [{ "other": "#[doc(hidden)]" }], "inner": hidden });
    let mut all = crates(code("str"), FORMAT);
    let core = all.get_mut("rnet_core").unwrap();
    core.json["index"]["8"] = hidden;
    assert!(!listing(&all).unwrap().iter().any(|line| line.contains("code")));
}
