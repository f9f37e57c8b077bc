//! What `rnet topic pub` sends, and which type it has.

use std::io::Read;
use std::path::Path;

use rnet::inspect::Snapshot;
use rnet::{PlainType, TypeDesc};
use serde_json::Value;

use crate::args::PubArgs;
use crate::failure::{Failure, Outcome};
use crate::render;

/// A message as it stands on the command line.
#[derive(Debug)]
pub enum Payload {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A JSON value, of a plain type that is to be found; named, if the user named it.
    Json { type_name: Option<String>, value: Value },
}

impl Payload {
    /// Reads the command line, and the file that it may name.
    pub fn of(args: &PubArgs) -> Outcome<Payload> {
        let flags = [args.hex.is_some(), args.text.is_some(), args.file.is_some()];
        if flags.contains(&true) && !args.words.is_empty() {
            let what = "DATA and --hex, --text or --file are two messages; give one";
            return Err(Failure::Usage(what.to_owned()));
        }
        if let Some(hex) = &args.hex {
            let bytes = render::from_hex(hex).map_err(|e| Failure::Usage(format!("--hex: {e}")))?;
            return Ok(Payload::Bytes(bytes));
        }
        if let Some(text) = &args.text {
            return Ok(Payload::Bytes(text.clone().into_bytes()));
        }
        if let Some(file) = &args.file {
            return read(file).map(Payload::Bytes);
        }
        match args.words.as_slice() {
            [] => Err(Failure::Usage(
                "nothing to publish: give DATA as JSON, or --hex, --text or --file".to_owned(),
            )),
            [raw, data] if raw == "raw" => Ok(Payload::Bytes(data.clone().into_bytes())),
            [name, data] => json(Some(name.clone()), data),
            [data, ..] => json(None, data),
        }
    }

    /// The bytes, and the type under which they are published. `Ok(None)` if the type is not
    /// known yet and may become so.
    pub fn resolve(
        &self,
        topic: &str,
        snapshot: &Snapshot,
        given: Option<&TypeDesc>,
    ) -> Outcome<Option<(Vec<u8>, TypeDesc)>> {
        let known = given.and_then(TypeDesc::as_plain).or_else(|| snapshot.plain_type_of(topic));
        match (self, known) {
            (Payload::Bytes(bytes), None) => Ok(Some((bytes.clone(), TypeDesc::Raw))),
            // Raw bytes on a typed topic go under its type, which its subscribers insist on.
            (Payload::Bytes(bytes), Some(plain)) if bytes.len() == plain.size => {
                Ok(Some((bytes.clone(), TypeDesc::Plain(plain.clone()))))
            }
            (Payload::Bytes(bytes), Some(plain)) => Err(Failure::Failed(format!(
                "messages on {topic} are {} of {} bytes, and these are {} bytes",
                plain.name,
                plain.size,
                bytes.len()
            ))),
            (Payload::Json { type_name, value }, Some(plain)) => {
                check_name(topic, type_name.as_deref(), plain)?;
                Ok(Some((plain.encode(value)?, TypeDesc::Plain(plain.clone()))))
            }
            (Payload::Json { .. }, None) if snapshot.topics().contains(&topic) => {
                Err(Failure::Failed(format!(
                    "messages on {topic} are raw bytes, and JSON has no form there: use --hex, --text or --file, or \
                     give the type with --type-json"
                )))
            }
            (Payload::Json { .. }, None) => Ok(None),
        }
    }
}

fn check_name(topic: &str, named: Option<&str>, plain: &PlainType) -> Outcome {
    match named {
        Some(named) if named != plain.name => Err(Failure::Failed(format!(
            "messages on {topic} are of type {}, not {named}",
            plain.name
        ))),
        _ => Ok(()),
    }
}

fn json(type_name: Option<String>, data: &str) -> Outcome<Payload> {
    match serde_json::from_str(data) {
        Ok(value) => Ok(Payload::Json { type_name, value }),
        Err(e) => {
            let what = format!("DATA is not JSON: {e}; for text use --text, for bytes --hex");
            Err(Failure::Usage(what))
        }
    }
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    let failed =
        |e: std::io::Error| Failure::Rnet(rnet::Error::io("cannot read", path.to_path_buf(), &e));
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(failed)
}

/// The type that `--type-json` gives: the JSON itself, or a file that holds it.
pub fn given_type(text: &str) -> Outcome<TypeDesc> {
    let text = if text.trim_start().starts_with('{') {
        text.to_owned()
    } else {
        let bytes = read(Path::new(text))?;
        String::from_utf8(bytes)
            .map_err(|_| Failure::Failed(format!("{text} does not hold JSON text")))?
    };
    Ok(TypeDesc::from_json(&text)?)
}
