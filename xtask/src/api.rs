//! `cargo xtask api`: compares the public API of the crate `rnet` with `docs/api/rnet.txt`.
//!
//! rustdoc describes each workspace crate as JSON. The listing has one line with the signature of each item
//! that a program can access through `rnet`, including re-exports of other workspace crates, without
//! `#[doc(hidden)]` items.

mod render;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{Finding, Outcome, output};
use render::{Render, Text, list, tagged};

const LISTING: &str = "docs/api/rnet.txt";
/// The crates that `rnet` re-exports from.
const CRATES: &[&str] = &[
    "rnet",
    "rnet-call",
    "rnet-core",
    "rnet-derive",
    "rnet-inspect",
    "rnet-node",
    "rnet-schema",
    "rnet-shm",
    "rnet-state",
];
/// The format of rustdoc's JSON that the listing is made from: that of Rust 1.95.
const FORMAT: u64 = 57;

const HEAD: &str =
    "# The public API of the crate `rnet`. Written by `cargo xtask api --write`; do not edit.\n";

/// rustdoc's description of one crate.
pub struct Crate {
    json: Value,
    /// The id of each item that the crate defines, by its kind and full path.
    defined: HashMap<(String, Vec<String>), String>,
}

impl Crate {
    fn new(json: Value) -> Self {
        let mut defined = HashMap::new();
        for (id, summary) in json["paths"].as_object().into_iter().flatten() {
            if summary["crate_id"] == 0 {
                defined.insert(place_of(summary), id.clone());
            }
        }
        Self { json, defined }
    }

    fn item(&self, id: &Value) -> Option<&Value> {
        self.json["index"].get(id.to_string())
    }

    /// An item that is not hidden itself: items of a hidden module may be re-exported.
    fn shown(&self, id: &Value) -> Option<&Value> {
        self.item(id).filter(|item| !is_hidden(item))
    }

    /// The crate and the full path of an id.
    fn summary(&self, id: &Value) -> Option<(&str, Vec<String>)> {
        let summary = self.json["paths"].get(id.to_string())?;
        let (_, path) = place_of(summary);
        let owner = match summary["crate_id"].as_u64()? {
            0 => "rnet",
            number => self.json["external_crates"][number.to_string()]["name"].as_str()?,
        };
        Some((owner, path))
    }
}

fn place_of(summary: &Value) -> (String, Vec<String>) {
    let path = list(&summary["path"]).iter().filter_map(Value::as_str).map(str::to_owned);
    (summary["kind"].as_str().unwrap_or_default().to_owned(), path.collect())
}

/// An item of a workspace crate.
type Found<'c> = (&'c Crate, &'c Value);

struct Listing<'c> {
    crates: &'c BTreeMap<String, Crate>,
    lines: Vec<String>,
    /// The modules that are being listed, so that a module that re-exports itself terminates.
    open: Vec<*const Value>,
}

impl<'c> Listing<'c> {
    /// Resolves the target of a `use` in the workspace crate that defines it.
    fn resolve(&self, owner: &'c Crate, id: &Value) -> Option<Found<'c>> {
        if owner.item(id).is_some() {
            return Some((owner, owner.shown(id)?));
        }
        let summary = owner.json["paths"].get(id.to_string())?;
        let place = place_of(summary);
        let other = self.crates.get(place.1.first()?)?;
        let number = other.defined.get(&place)?;
        let index = &other.json["index"];
        // A derive macro has one id as a member of its crate and another as the target of paths.
        let of_root = || {
            let members = list(&other.item(&other.json["root"])?["inner"]["module"]["items"]);
            members.iter().filter_map(|id| other.item(id)).find(|item| {
                item["inner"].get("proc_macro").is_some()
                    && place.1.last().is_some_and(|name| item["name"] == **name)
            })
        };
        let item = index.get(number).or_else(of_root)?;
        (!is_hidden(item)).then_some((other, item))
    }

    fn module(&mut self, owner: &'c Crate, module: &'c Value, path: &str) -> Result<(), String> {
        let (kind, it) = tagged(&module["inner"]);
        if self.open.contains(&std::ptr::from_ref(module)) {
            return Ok(());
        }
        self.open.push(std::ptr::from_ref(module));
        let before = std::mem::take(&mut self.lines);
        let mut members = Vec::new();
        let ids = list(&it[if kind == "enum" { "variants" } else { "items" }]);
        for item in ids.iter().filter_map(|id| owner.shown(id)) {
            self.member(owner, item, path)?;
            members.push(std::mem::take(&mut self.lines));
        }
        self.open.pop();
        // The source order is irrelevant.
        members.sort();
        self.lines = before;
        self.lines.extend(members.into_iter().flatten());
        Ok(())
    }

    fn member(&mut self, owner: &'c Crate, item: &'c Value, path: &str) -> Result<(), String> {
        let ("use", used) = tagged(&item["inner"]) else {
            let name = item["name"].as_str().unwrap_or_default();
            return self.item(owner, item, &format!("{path}::{name}"));
        };
        let name = used["name"].as_str().unwrap_or_default();
        match (self.resolve(owner, &used["id"]), used["is_glob"] == true) {
            (Some((owner, module)), true) => self.module(owner, module, path)?,
            (Some((owner, item)), false) => self.item(owner, item, &format!("{path}::{name}"))?,
            (None, glob) => {
                let written = used["source"].as_str().unwrap_or_default().to_owned();
                let source =
                    owner.summary(&used["id"]).map_or(written, |(_, path)| path.join("::"));
                let name = if glob { "*" } else { name };
                self.lines.push(format!("pub use {path}::{name} = {source}"));
            }
        }
        Ok(())
    }

    fn item(&mut self, owner: &'c Crate, item: &'c Value, path: &str) -> Result<(), String> {
        let (kind, it) = tagged(&item["inner"]);
        let render = Render(owner);
        let generics = &it["generics"];
        let head = |word: &str| -> Text {
            let (params, conditions) = (render.params(generics)?, render.conditions(generics)?);
            Ok(format!("{}pub {word} {path}{params}{conditions}", attributes(item)))
        };
        match kind {
            "module" => {
                self.lines.push(format!("pub mod {path}"));
                self.module(owner, item, path)?;
            }
            "struct" | "union" => {
                let (shape, fields) = tagged(&it["kind"]);
                let plain = if kind == "union" { &it["fields"] } else { &fields["fields"] };
                let tuple = if shape == "tuple" { tuple(owner, fields)? } else { String::new() };
                self.lines.push(head(kind)? + &tuple);
                self.fields(owner, plain, path)?;
                self.implementations(owner, it, path)?;
            }
            "enum" => {
                self.lines.push(head("enum")?);
                for variant in list(&it["variants"]).iter().filter_map(|id| owner.shown(id)) {
                    self.item(owner, variant, &format!("{path}::{}", name_of(variant)))?;
                }
                self.implementations(owner, it, path)?;
            }
            "variant" => {
                let (shape, fields) = tagged(&it["kind"]);
                let tuple = if shape == "tuple" { tuple(owner, fields)? } else { String::new() };
                let value = it["discriminant"]["value"].as_str();
                let value = value.map(|v| format!(" = {v}")).unwrap_or_default();
                self.lines.push(format!("{}{path}{tuple}{value}", attributes(item)));
                self.fields(owner, &fields["fields"], path)?;
            }
            "trait" => {
                let bounds = render.bounds(&it["bounds"])?;
                let colon = if bounds.is_empty() { "" } else { ": " };
                let word = if it["is_unsafe"] == true { "unsafe trait" } else { "trait" };
                let params = render.params(generics)?;
                let conditions = render.conditions(generics)?;
                self.lines.push(format!("pub {word} {path}{params}{colon}{bounds}{conditions}"));
                for member in list(&it["items"]).iter().filter_map(|id| owner.shown(id)) {
                    self.associated(owner, member, path, "")?;
                }
                self.foreign_implementations(owner, it)?;
            }
            "function" => self.lines.push(render.function("pub ", path, it)?),
            "constant" => {
                let value = ["value", "expr"].map(|name| it["const"][name].as_str());
                let value = value[0].or(value[1]).unwrap_or("_");
                self.lines.push(format!("pub const {path}: {} = {value}", render.ty(&it["type"])?));
            }
            "static" => self.lines.push(format!("pub static {path}: {}", render.ty(&it["type"])?)),
            "type_alias" => {
                let line = format!("{} = {}", head("type")?, render.ty(&it["type"])?);
                self.lines.push(line);
            }
            "macro" => self.lines.push(format!("pub macro {path}!")),
            "proc_macro" => {
                self.lines.push(format!("pub {} macro {path}", it["kind"].as_str().unwrap_or("")))
            }
            _ => return Err(format!("{path}: unknown kind of item: {kind}")),
        }
        Ok(())
    }

    fn fields(&mut self, owner: &Crate, fields: &Value, path: &str) -> Result<(), String> {
        for field in list(fields).iter().filter_map(|id| owner.shown(id)) {
            let ty = Render(owner).ty(&field["inner"]["struct_field"])?;
            self.lines.push(format!("pub {path}::{}: {ty}", name_of(field)));
        }
        Ok(())
    }

    /// The members of a type: its own functions, and the names of the traits that it implements. The trait
    /// determines their functions. Of the auto traits, these two are part of the API.
    fn implementations(&mut self, owner: &Crate, it: &Value, path: &str) -> Result<(), String> {
        let mut groups = Vec::new();
        for block in list(&it["impls"]).iter().filter_map(|id| owner.shown(id)) {
            let block = &block["inner"]["impl"];
            let name = block["trait"]["path"].as_str().unwrap_or_default();
            let promised = block["is_synthetic"] == false || matches!(name, "Send" | "Sync");
            if !block["blanket_impl"].is_null() || !promised || name == "StructuralPartialEq" {
                continue;
            }
            let head = Render(owner).implementation(block, Some(path))?;
            let mut part = Listing { crates: self.crates, lines: vec![], open: vec![] };
            for member in list(&block["items"]).iter().filter_map(|id| owner.shown(id)) {
                let (kind, _) = tagged(&member["inner"]);
                if block["trait"].is_null() {
                    part.associated(owner, member, path, "pub ")?;
                } else if kind != "function" {
                    part.associated(owner, member, &format!("<{path} as {name}>"), "")?;
                }
            }
            part.lines.sort();
            groups.push((!block["trait"].is_null(), head, part.lines));
        }
        groups.sort();
        for (_, head, lines) in groups {
            self.lines.push(head);
            self.lines.extend(lines);
        }
        Ok(())
    }

    /// Trait implementations for foreign types, which are not listed elsewhere.
    fn foreign_implementations(&mut self, owner: &Crate, it: &Value) -> Result<(), String> {
        let mut lines = Vec::new();
        for block in list(&it["implementations"]).iter().filter_map(|id| owner.shown(id)) {
            let block = &block["inner"]["impl"];
            let (kind, target) = tagged(&block["for"]);
            if kind != "resolved_path" || owner.item(&target["id"]).is_none() {
                lines.push(Render(owner).implementation(block, None)?);
            }
        }
        lines.sort();
        self.lines.extend(lines);
        Ok(())
    }

    fn associated(
        &mut self,
        owner: &Crate,
        member: &Value,
        path: &str,
        visibility: &str,
    ) -> Result<(), String> {
        let (kind, it) = tagged(&member["inner"]);
        let (path, render) = (format!("{path}::{}", name_of(member)), Render(owner));
        let line = match kind {
            "function" => {
                let provided = visibility.is_empty() && it["has_body"] == true;
                render.function(visibility, &path, it)? + if provided { " { … }" } else { "" }
            }
            "assoc_const" => {
                let value = it["value"].as_str().map(|v| format!(" = {v}")).unwrap_or_default();
                format!("{visibility}const {path}: {}{value}", render.ty(&it["type"])?)
            }
            "assoc_type" => {
                let params = render.params(&it["generics"])?;
                let bounds = render.bounds(&it["bounds"])?;
                let colon = if bounds.is_empty() { "" } else { ": " };
                let is = match it["type"].is_null() {
                    true => String::new(),
                    false => format!(" = {}", render.ty(&it["type"])?),
                };
                format!("type {path}{params}{colon}{bounds}{is}")
            }
            _ => return Err(format!("{path}: unknown member: {kind}")),
        };
        self.lines.push(format!("{}{line}", attributes(member)));
        Ok(())
    }
}

fn name_of(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}

fn is_hidden(item: &Value) -> bool {
    list(&item["attrs"]).iter().any(|attribute| attribute["other"] == "#[doc(hidden)]")
}

fn tuple(owner: &Crate, fields: &Value) -> Text {
    let types = list(fields).iter().map(|id| match owner.shown(id) {
        Some(field) => Render(owner).ty(&field["inner"]["struct_field"]),
        None => Ok("_".to_owned()),
    });
    Ok(format!("({})", types.collect::<Result<Vec<_>, _>>()?.join(", ")))
}

/// The attributes that affect users.
fn attributes(item: &Value) -> String {
    let mut found = String::new();
    for attribute in list(&item["attrs"]) {
        match tagged(attribute) {
            ("non_exhaustive", _) => found += "#[non_exhaustive] ",
            ("must_use", _) => found += "#[must_use] ",
            ("repr", repr) => {
                found += &format!("#[repr({})] ", repr["kind"].as_str().unwrap_or(""))
            }
            _ => {}
        }
    }
    if item["deprecation"].is_object() { found + "#[deprecated] " } else { found }
}

/// The lines of the listing, from the JSON of all workspace crates by their Rust names.
fn listing(crates: &BTreeMap<String, Crate>) -> Result<Vec<String>, String> {
    let rnet = crates.get("rnet").ok_or("rustdoc did not describe the crate `rnet`")?;
    let root = rnet.item(&rnet.json["root"]).ok_or("the JSON of `rnet` has no root")?;
    let mut listing = Listing { crates, lines: vec![], open: vec![] };
    listing.module(rnet, root, "rnet")?;
    Ok(listing.lines)
}

/// Compares the API with its listing, or writes the listing.
pub fn run(root: &Path, rest: &[String]) -> Option<Outcome> {
    let write = match rest {
        [] => false,
        [option] if option == "--write" => true,
        _ => return None,
    };
    Some(describe(root).and_then(|crates| {
        if let Some(format) = crates.values().find_map(other_format) {
            let why =
                format!("rustdoc writes JSON format {format}, but {LISTING} has format {FORMAT}");
            if write {
                return Err(why);
            }
            println!("NOT RUN: check-api: {why}");
            return Ok(("nothing compared".to_owned(), vec![]));
        }
        let now = listing(&crates)?;
        let checked = format!("{} lines", now.len());
        if write {
            let text = HEAD.to_owned() + &now.join("\n") + "\n";
            std::fs::write(root.join(LISTING), text).map_err(|e| format!("{LISTING}: {e}"))?;
            return Ok((checked, vec![]));
        }
        let before = std::fs::read_to_string(root.join(LISTING)).unwrap_or_default();
        let before: Vec<&str> = before.lines().filter(|line| !line.starts_with("# ")).collect();
        let now: Vec<&str> = now.iter().map(String::as_str).collect();
        Ok((checked, differences(&before, &now)))
    }))
}

fn other_format(described: &Crate) -> Option<&Value> {
    Some(&described.json["format_version"]).filter(|format| **format != FORMAT)
}

/// rustdoc's description of the workspace crates.
fn describe(root: &Path) -> Result<BTreeMap<String, Crate>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    // Only rustdoc gets the variable that enables its unstable JSON: with it, build scripts would run again.
    let flags = "-Z unstable-options --output-format json --document-hidden-items";
    output(
        Command::new(cargo)
            .args(["doc", "--quiet", "--no-deps"])
            .args(packages)
            .env("RUSTDOC", root.join("scripts/rustdoc-json.sh"))
            .env("RUSTDOCFLAGS", flags)
            .current_dir(root),
    )?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    CRATES
        .iter()
        .map(|name| {
            let name = name.replace('-', "_");
            let path = root.join(&target).join("doc").join(format!("{name}.json"));
            let text =
                std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let json =
                serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok((name, Crate::new(json)))
        })
        .collect()
}

/// The added and removed lines, in the order of the listing.
fn differences(before: &[&str], now: &[&str]) -> Vec<Finding> {
    let same = before.iter().zip(now).take_while(|(a, b)| a == b).count();
    let (before, now) = (&before[same..], &now[same..]);
    // Length of the longest common subsequence from each pair of positions on.
    let mut common = vec![vec![0_u32; now.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..now.len()).rev() {
            common[i][j] = match before[i] == now[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut changes) = (0, 0, String::new());
    while i < before.len() || j < now.len() {
        if i < before.len() && j < now.len() && before[i] == now[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == now.len() || i < before.len() && common[i + 1][j] >= common[i][j + 1] {
            changes += &format!("\n- {}", before[i]);
            i += 1;
        } else {
            changes += &format!("\n+ {}", now[j]);
            j += 1;
        }
    }
    if changes.is_empty() {
        return vec![];
    }
    let advice = "If this change is intended, run `cargo xtask api --write` and commit the file.";
    vec![Finding::new(LISTING, format!("the public API has changed:{changes}\n{advice}"))]
}

#[cfg(test)]
mod tests;
