//! Renders signatures in Rust syntax from rustdoc's JSON.
//!
//! Unknown JSON is an error that contains it, because an incomplete listing would hide a change.

use serde_json::Value;

use super::Crate;

/// Text of a signature, or the unknown JSON.
pub type Text = Result<String, String>;

/// Renders items of one crate, with the type names of its tables.
pub struct Render<'c>(pub &'c Crate);

static NULL: Value = Value::Null;

/// The name and the content of a rustdoc enum: `{"slice": …}`, or `"infer"`.
pub fn tagged(value: &Value) -> (&str, &Value) {
    if let Some(name) = value.as_str() {
        return (name, &NULL);
    }
    match value.as_object().and_then(|o| o.iter().next()) {
        Some((name, content)) => (name, content),
        None => ("", value),
    }
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

fn unknown(what: &str, value: &Value) -> Text {
    Err(format!("unknown {what}: {value}"))
}

/// `before`, the parts joined by `between`, and `after`; empty without parts.
fn enclosed(before: &str, parts: &[String], between: &str, after: &str) -> String {
    if parts.is_empty() { String::new() } else { before.to_owned() + &parts.join(between) + after }
}

impl Render<'_> {
    fn each(&self, values: &Value, render: impl Fn(&Value) -> Text) -> Result<Vec<String>, String> {
        list(values).iter().map(render).collect()
    }

    pub fn ty(&self, value: &Value) -> Text {
        let (kind, it) = tagged(value);
        Ok(match kind {
            "resolved_path" => self.path(it)?,
            "dyn_trait" => {
                let mut parts = self.each(&it["traits"], |t| {
                    Ok(self.for_lifetimes(&t["generic_params"])? + &self.path(&t["trait"])?)
                })?;
                parts.extend(it["lifetime"].as_str().map(str::to_owned));
                format!("dyn {}", parts.join(" + "))
            }
            "generic" | "primitive" => text(it).to_owned(),
            "function_pointer" => {
                let params = self.for_lifetimes(&it["generic_params"])?;
                format!("{params}{}fn{}", self.header(&it["header"]), self.signature(&it["sig"])?)
            }
            "tuple" => {
                let parts = self.each(it, |t| self.ty(t))?;
                format!("({}{})", parts.join(", "), if parts.len() == 1 { "," } else { "" })
            }
            "slice" => format!("[{}]", self.ty(it)?),
            "array" => format!("[{}; {}]", self.ty(&it["type"])?, text(&it["len"])),
            "impl_trait" => format!("impl {}", self.bounds(it)?),
            "infer" => "_".to_owned(),
            "raw_pointer" => {
                let kind = if is(&it["is_mutable"]) { "mut" } else { "const" };
                format!("*{kind} {}", self.ty(&it["type"])?)
            }
            "borrowed_ref" => {
                let lifetime = it["lifetime"].as_str().map(|l| format!("{l} ")).unwrap_or_default();
                let mutable = if is(&it["is_mutable"]) { "mut " } else { "" };
                let inner = self.ty(&it["type"])?;
                let grouped = it["type"].get("dyn_trait").is_some() && inner.contains(" + ");
                let inner = if grouped { format!("({inner})") } else { inner };
                format!("&{lifetime}{mutable}{inner}")
            }
            "qualified_path" => {
                let owner = self.ty(&it["self_type"])?;
                let name = text(&it["name"]).to_owned() + &self.args(&it["args"])?;
                match it["trait"].as_object().is_some_and(|t| t["path"] != "") {
                    true => format!("<{owner} as {}>::{name}", self.path(&it["trait"])?),
                    false => format!("{owner}::{name}"),
                }
            }
            _ => return unknown("type", value),
        })
    }

    /// A type or trait with its arguments. A workspace item has its last name only, because modules are
    /// private; others have their full path.
    pub fn path(&self, path: &Value) -> Text {
        let written = text(&path["path"]);
        let name = match self.0.summary(&path["id"]) {
            Some((owner, full)) if !owner.starts_with("rnet") => full.join("::"),
            Some((_, full)) => full.last().cloned().unwrap_or_default(),
            None => written.rsplit("::").next().unwrap_or_default().to_owned(),
        };
        Ok(name + &self.args(&path["args"])?)
    }

    fn args(&self, args: &Value) -> Text {
        let (kind, it) = tagged(args);
        Ok(match kind {
            "" => String::new(),
            "angle_bracketed" => {
                let mut parts = self.each(&it["args"], |arg| match tagged(arg) {
                    ("lifetime", l) => Ok(text(l).to_owned()),
                    ("type", t) => self.ty(t),
                    ("const", c) => Ok(text(&c["expr"]).to_owned()),
                    ("infer", _) => Ok("_".to_owned()),
                    _ => unknown("argument", arg),
                })?;
                parts.extend(self.each(&it["constraints"], |c| {
                    let name = text(&c["name"]).to_owned() + &self.args(&c["args"])?;
                    match tagged(&c["binding"]) {
                        ("equality", term) => Ok(format!("{name} = {}", self.term(term)?)),
                        ("constraint", bounds) => Ok(format!("{name}: {}", self.bounds(bounds)?)),
                        _ => unknown("constraint", c),
                    }
                })?);
                enclosed("<", &parts, ", ", ">")
            }
            "parenthesized" => {
                let inputs = self.each(&it["inputs"], |t| self.ty(t))?.join(", ");
                format!("({inputs}){}", self.output(&it["output"])?)
            }
            _ => return unknown("arguments", args),
        })
    }

    fn term(&self, term: &Value) -> Text {
        match tagged(term) {
            ("type", t) => self.ty(t),
            ("constant", c) => Ok(text(&c["expr"]).to_owned()),
            _ => unknown("term", term),
        }
    }

    pub fn bounds(&self, bounds: &Value) -> Text {
        let parts = self.each(bounds, |bound| match tagged(bound) {
            ("trait_bound", b) => {
                let params = self.for_lifetimes(&b["generic_params"])?;
                let modifier = match text(&b["modifier"]) {
                    "maybe" => "?",
                    "none" => "",
                    _ => return unknown("modifier", b),
                };
                Ok(format!("{params}{modifier}{}", self.path(&b["trait"])?))
            }
            ("outlives", lifetime) => Ok(text(lifetime).to_owned()),
            ("use", captured) => {
                let names = self.each(captured, |c| match tagged(c) {
                    (name, Value::Null) => Ok(name.to_owned()),
                    (_, name) => Ok(text(name).to_owned()),
                })?;
                Ok(format!("use<{}>", names.join(", ")))
            }
            _ => unknown("bound", bound),
        })?;
        Ok(parts.join(" + "))
    }

    fn for_lifetimes(&self, params: &Value) -> Text {
        let names = self.each(params, |p| Ok(text(&p["name"]).to_owned()))?;
        Ok(enclosed("for<", &names, ", ", "> "))
    }

    /// The parameters in `<…>`, without those of `impl Trait`.
    pub fn params(&self, generics: &Value) -> Text {
        let mut parts = Vec::new();
        for param in list(&generics["params"]) {
            let name = text(&param["name"]);
            let (kind, it) = tagged(&param["kind"]);
            match kind {
                "lifetime" => {
                    let outlives = self.each(&it["outlives"], |l| Ok(text(l).to_owned()))?;
                    parts.push(name.to_owned() + &enclosed(": ", &outlives, " + ", ""));
                }
                "type" if is(&it["is_synthetic"]) => {}
                "type" => {
                    let bounds = self.bounds(&it["bounds"])?;
                    let colon = if bounds.is_empty() { "" } else { ": " };
                    let default = match it["default"].is_null() {
                        true => String::new(),
                        false => format!(" = {}", self.ty(&it["default"])?),
                    };
                    parts.push(format!("{name}{colon}{bounds}{default}"));
                }
                "const" => parts.push(format!("const {name}: {}", self.ty(&it["type"])?)),
                _ => return unknown("parameter", param),
            }
        }
        Ok(enclosed("<", &parts, ", ", ">"))
    }

    pub fn conditions(&self, generics: &Value) -> Text {
        let parts = self.each(&generics["where_predicates"], |predicate| {
            let (kind, it) = tagged(predicate);
            Ok(match kind {
                "bound_predicate" => {
                    let params = self.for_lifetimes(&it["generic_params"])?;
                    format!("{params}{}: {}", self.ty(&it["type"])?, self.bounds(&it["bounds"])?)
                }
                "lifetime_predicate" => {
                    let outlives = self.each(&it["outlives"], |l| Ok(text(l).to_owned()))?;
                    format!("{}: {}", text(&it["lifetime"]), outlives.join(" + "))
                }
                "eq_predicate" => format!("{} = {}", self.ty(&it["lhs"])?, self.term(&it["rhs"])?),
                _ => return unknown("condition", predicate),
            })
        })?;
        Ok(enclosed(" where ", &parts, ", ", ""))
    }

    fn output(&self, output: &Value) -> Text {
        if output.is_null() { Ok(String::new()) } else { Ok(format!(" -> {}", self.ty(output)?)) }
    }

    /// Arguments and result. Names of arguments are not part of the API.
    fn signature(&self, sig: &Value) -> Text {
        let mut inputs = self.each(&sig["inputs"], |input| {
            let ty = self.ty(&input[1])?;
            Ok(match (text(&input[0]), ty.as_str()) {
                ("self", "Self") => "self".to_owned(),
                ("self", "&Self") => "&self".to_owned(),
                ("self", "&mut Self") => "&mut self".to_owned(),
                ("self", _) => format!("self: {ty}"),
                _ => ty,
            })
        })?;
        if is(&sig["is_c_variadic"]) {
            inputs.push("...".to_owned());
        }
        Ok(format!("({}){}", inputs.join(", "), self.output(&sig["output"])?))
    }

    fn header(&self, header: &Value) -> String {
        let mut words = String::new();
        for (field, word) in
            [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")]
        {
            words += if is(&header[field]) { word } else { "" };
        }
        match tagged(&header["abi"]) {
            ("Rust" | "", _) => words,
            (abi, _) => format!("{words}extern \"{abi}\" "),
        }
    }

    /// `pub fn PATH<…>(…) -> … where …`.
    pub fn function(&self, visibility: &str, path: &str, it: &Value) -> Text {
        let generics = &it["generics"];
        Ok(format!(
            "{visibility}{}fn {path}{}{}{}",
            self.header(&it["header"]),
            self.params(generics)?,
            self.signature(&it["sig"])?,
            self.conditions(generics)?,
        ))
    }

    /// `impl<…> Trait for Type where …`; uses the public path of the type, if it has one.
    pub fn implementation(&self, it: &Value, public: Option<&str>) -> Text {
        let generics = &it["generics"];
        let unsafe_ = if is(&it["is_unsafe"]) { "unsafe " } else { "" };
        let not = if is(&it["is_negative"]) { "!" } else { "" };
        let subject = match it["trait"].is_null() {
            true => String::new(),
            false => format!("{not}{} for ", self.path(&it["trait"])?),
        };
        let ty = match (public, tagged(&it["for"])) {
            (Some(path), ("resolved_path", ty)) => path.to_owned() + &self.args(&ty["args"])?,
            _ => self.ty(&it["for"])?,
        };
        let (params, conditions) = (self.params(generics)?, self.conditions(generics)?);
        Ok(format!("{unsafe_}impl{params} {subject}{ty}{conditions}"))
    }
}
