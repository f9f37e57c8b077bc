//! A black box and its files, for people.

use rnet_format::text::escape_controls;
use rnet_format::units;
use serde_json::{Value, json};

use crate::names;
use crate::read::Recording;

/// The status of a black box, which its service replies, by name.
#[must_use]
pub fn status_rows(status: &Value) -> [(&'static str, String); 10] {
    let number = |key: &str| status[key].as_f64().unwrap_or(0.0);
    let text = |key: &str| status[key].as_str().unwrap_or("none").to_owned();
    let last = &status["last"];
    let last = match last.is_null() {
        true => "none".to_owned(),
        false => format!(
            "{}: {}",
            last["name"].as_str().unwrap_or(""),
            last["why"].as_str().unwrap_or("")
        ),
    };
    let lacking: String =
        [("lost_files", "removed before they were written"), ("incomplete_files", "incomplete")]
            .iter()
            .filter(|(key, _)| number(key) > 0.0)
            .map(|(key, what)| format!("; {what}: {}", number(key)))
            .collect();
    let triggers = status["triggers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    [
        ("domain", text("domain")),
        ("ring", text("ring")),
        (
            "keeps",
            match status["shorter"].as_str() {
                Some(shorter) => shorter.to_owned(),
                None => {
                    format!("{:.1} s, {}", number("kept_s"), units::bytes(number("ring_bytes")))
                }
            },
        ),
        ("memory", format!("at most {}", units::bytes(number("memory_bytes")))),
        (
            "messages",
            format!(
                "{} kept, {} missed; {} publishers not heard",
                number("messages"),
                number("missing"),
                number("unheard")
            ),
        ),
        ("triggers", triggers.collect::<Vec<_>>().join(", ")),
        (
            "fired",
            format!(
                "{}, {} of them without a file of their own; last: {last}",
                number("fired"),
                number("merged")
            ),
        ),
        ("pending", text("pending")),
        ("files", format!("{}; last: {}{lacking}", number("files"), text("last_file"))),
        ("folder", text("folder")),
    ]
}

/// A file of a black box, as JSON.
#[must_use]
pub fn file_document(recording: &Recording, len_bytes: u64) -> Value {
    let found = recording.info();
    let fired = found.metadata.iter().filter(|one| one.name == names::TRIGGER);
    let fired: Vec<Value> = fired.map(|one| json!(one.metadata)).collect();
    json!({
        "file": recording.path(), "len_bytes": len_bytes, "messages": found.messages(), "fired": fired,
        "incomplete": fired.first().map(|one| &one["incomplete"]),
        "problems": found.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Cells of a file's document: name, size, messages, triggers, the first trigger.
#[must_use]
pub fn file_row(of: &Value) -> Vec<String> {
    let fired = of["fired"].as_array().map_or(&[][..], Vec::as_slice);
    let first = fired.first().map_or_else(String::new, |first| {
        format!("{}: {}", first["name"].as_str().unwrap_or(""), first["why"].as_str().unwrap_or(""))
    });
    vec![
        of["file"].as_str().unwrap_or("").to_owned(),
        units::bytes(of["len_bytes"].as_f64().unwrap_or(0.0)),
        of["messages"].to_string(),
        fired.len().to_string(),
        escape_controls(&first).into_owned(),
    ]
}
