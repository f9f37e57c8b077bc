//! Parameters of nodes, named by node and parameter as one path: `/arm/speed`.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rnet::param::{ParamInfo, ParamKind};
use rnet::state::{Change, State, Value, WatchHandle};
use serde_json::Value as Json;

use super::{LiveBackend, lock};
use crate::hub::Hub;
use crate::incoming::Parameter;

/// Prefix of parameters in the state.
const PARAMS_PREFIX: &str = "/params";

/// The watch of parameters, opened when a client first follows one.
#[derive(Default)]
pub struct ParamWatch(Mutex<Option<WatchHandle>>);

impl ParamWatch {
    /// Starts notifying the hub of each change.
    pub fn follow(&self, live: &LiveBackend) -> Result<(), String> {
        let mut watch = lock(&self.0);
        if watch.is_some() {
            return Ok(());
        }
        // Creates the state if it does not exist: the followed parameter may be declared later.
        let state = live.node()?.state().map_err(|error| error.to_string())?;
        let changes = state.watch(PARAMS_PREFIX).map_err(|error| error.to_string())?;
        let hub: Arc<Hub> = live.hub.clone();
        *watch = Some(changes.on(move |change: Change| {
            if change.initial {
                return;
            }
            let Some(name) = change.key.strip_prefix(PARAMS_PREFIX) else { return };
            let value = change.entry.as_ref().map(|entry| &entry.value);
            hub.notify_parameter(&parameter(name, value));
        }));
        Ok(())
    }
}

/// The state, if it exists.
fn state(live: &LiveBackend) -> Result<Option<State>, String> {
    let text = |error: rnet::Error| error.to_string();
    match live.options.location.domain().and_then(|domain| domain.has_state()).map_err(text)? {
        true => live.node()?.state().map(Some).map_err(text),
        false => Ok(None),
    }
}

fn name(info: &ParamInfo) -> &str {
    info.key.strip_prefix(PARAMS_PREFIX).unwrap_or(&info.key)
}

/// The parameters of these names; all if `names` is empty. Unknown names are omitted.
pub fn get(live: &LiveBackend, names: &[String]) -> Result<Vec<Parameter>, String> {
    let Some(state) = state(live)? else { return Ok(Vec::new()) };
    let params = state.params().map_err(|error| error.to_string())?;
    let asked = params
        .iter()
        .filter(|info| names.is_empty() || names.iter().any(|name| name == self::name(info)));
    Ok(asked.map(|info| parameter(name(info), info.value())).collect())
}

/// Sets a parameter; without a value, resets it to its default.
pub fn set(live: &LiveBackend, parameter: &Parameter) -> Result<(), String> {
    let wrong = |why: String| format!("the parameter {:.255} was not set: {why}", parameter.name);
    let text = |error: rnet::Error| wrong(error.to_string());
    let unknown = || wrong("it is not declared by any node".to_owned());
    let state = state(live)?.ok_or_else(unknown)?;
    let params = state.params().map_err(text)?;
    let info = params.iter().find(|info| name(info) == parameter.name).ok_or_else(unknown)?;
    let description = info.description.as_ref().ok_or_else(unknown)?;
    let Some(value) = &parameter.value else {
        let node = rnet::NodeName::new(&description.node).map_err(text)?;
        return state.reset_param(&node, &description.name).map_err(text);
    };
    let value = value_of(value, parameter.kind.as_deref(), description.kind).map_err(wrong)?;
    state.put(&info.key).set(description.adapt(value)).map(drop).map_err(text)
}

fn parameter(name: &str, value: Option<&Value>) -> Parameter {
    let kind = match value {
        Some(Value::Float(_)) => Some("float64"),
        Some(Value::Bytes(_)) => Some("byte_array"),
        Some(Value::List(items)) if items.iter().all(|item| matches!(item, Value::Float(_))) => {
            (!items.is_empty()).then_some("float64_array")
        }
        _ => None,
    };
    Parameter { name: name.to_owned(), value: value.and_then(json), kind: kind.map(str::to_owned) }
}

fn json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Str(value) => value.as_str().into(),
        Value::Bytes(bytes) => BASE64.encode(bytes).into(),
        Value::Json(text) => serde_json::from_str(text).ok()?,
        Value::List(items) | Value::Set(items) => items.iter().filter_map(json).collect(),
        _ => return None,
    })
}

/// Converts a client's value for a parameter of this kind.
fn value_of(value: &Json, type_name: Option<&str>, kind: ParamKind) -> Result<Value, String> {
    let item = kind.item().unwrap_or(kind);
    Ok(match value {
        Json::Bool(value) => Value::Bool(*value),
        Json::String(text) if type_name == Some("byte_array") => {
            Value::Bytes(BASE64.decode(text).map_err(|error| format!("it is not base64: {error}"))?)
        }
        Json::String(text) => Value::Str(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Int(whole),
            // JavaScript has only one number type: 3.0 is accepted as an integer.
            (None, Some(number))
                if item == ParamKind::Int && number.fract() == 0.0 && number.abs() < 1e15 =>
            {
                Value::Int(number as i64)
            }
            (None, Some(number)) => Value::Float(number),
            (None, None) => return Err(format!("{number} is too large")),
        },
        Json::Array(items) => {
            let items = items.iter().map(|item| value_of(item, None, kind));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        Json::Null | Json::Object(_) => return Err("it is not a valid parameter value".to_owned()),
    })
}
