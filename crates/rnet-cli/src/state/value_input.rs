//! Parses a value of the command line, and determines its type.

use rnet::limits::MAX_VALUE_LEN_BYTES;
use rnet::state::Value;

use super::args::ValueArgs;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use rnet_format::value::input::{ValueInput, infer_value, kind_by_name, kind_of, parse_as};

const VALUE_LIMIT: InputLimit =
    InputLimit::new(MAX_VALUE_LEN_BYTES, "a value of the state", "MAX_VALUE_LEN_BYTES");

/// How the type was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeReason {
    /// By `--type`.
    Requested,
    /// The key already has it.
    Unchanged,
    /// The text looks like it.
    Inferred,
}

/// Parses the value: with the named type, otherwise with the type of the key, otherwise with the type that
/// the text looks like.
pub fn value(args: &ValueArgs, present: Option<&Value>) -> Outcome<(Value, TypeReason)> {
    let given = match (&args.file, &args.value) {
        (Some(path), _) => ValueInput::File(input::read(path, &VALUE_LIMIT)?),
        (None, Some(text)) => ValueInput::Text(text.clone()),
        (None, None) => return Err(Failure::Usage("give VALUE or --file".to_owned())),
    };
    if let Some(name) = &args.type_name {
        let kind = kind_by_name(name, &args.files.proto, &args.files.include)?;
        return Ok((parse_as(&kind, &given, "required by --type")?, TypeReason::Requested));
    }
    if !args.files.proto.is_empty() {
        let what = "--proto defines message types; select one with --type";
        return Err(Failure::Usage(what.to_owned()));
    }
    if let Some(kind) = present.filter(|_| !args.change_type).and_then(kind_of) {
        let why = "the key has this type; to change it, give --type and --change-type";
        return Ok((parse_as(&kind, &given, why)?, TypeReason::Unchanged));
    }
    match given {
        ValueInput::File(bytes) => Ok((Value::Bytes(bytes), TypeReason::Inferred)),
        ValueInput::Text(text) => Ok((infer_value(&text)?, TypeReason::Inferred)),
    }
}
