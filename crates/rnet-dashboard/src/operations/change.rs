//! Changes of state and of parameters.

use rnet::NodeName;
use rnet::param::ParamInfo;
use rnet::state::{RemoteState, StateMessage, Value, split_host};
use rnet_format::value::{encode, from_base64, from_json};
use rnet_monitor::documents;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::operator_node::OperatorNode;
use crate::times::{document, in_seconds, of_host};
use crate::wire::{Answer, Refusal, fields_of};

#[derive(Deserialize)]
struct StateSetRequest {
    key: String,
    value: Json,
    #[serde(rename = "type")]
    type_name: Option<String>,
}

/// `state.set`.
pub fn state_set(operator: &OperatorNode, fields: Json) -> Answer {
    let asked: StateSetRequest = fields_of(fields)?;
    if let Some((host, key)) = split_host(&asked.key) {
        let there = operator.state_of(host)?;
        let present = there.get(key)?.value;
        there.put(key).set(value_of(&asked, present.as_ref())?)?;
        let entry = there.entry(key)?.value;
        return Ok(json!({"entry": entry.map(|entry| of_host(host, document(&entry)))}));
    }
    let state = operator.state()?;
    let present = state.get(&asked.key)?;
    let value = value_of(&asked, present.as_ref())?;
    let put = state.put(&asked.key);
    let put = if asked.type_name.is_some() { put.change_type() } else { put };
    put.set(value)?;
    Ok(json!({"entry": state.entry(&asked.key)?.as_ref().map(document)}))
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

/// `state.delete`.
pub fn state_delete(operator: &OperatorNode, fields: Json) -> Answer {
    let Key { key } = fields_of(fields)?;
    let was_there = match split_host(&key) {
        Some((host, key)) => operator.state_of(host)?.delete(key)?,
        None => operator.state()?.delete(&key)?,
    };
    match was_there {
        true => Ok(json!({})),
        false => Err(Refusal::not_found(format!("key {key} does not exist"))),
    }
}

/// Converts JSON to a value: of the requested type, else of the type of the current value, else of the type
/// it resembles.
fn value_of(asked: &StateSetRequest, present: Option<&Value>) -> Result<Value, Refusal> {
    let message = present.and_then(Value::message_type);
    let kind = match (&asked.type_name, present) {
        (Some(name), _) => Some(name.as_str()),
        (None, Some(present)) => Some(present.type_name()),
        (None, None) => None,
    };
    let value = &asked.value;
    let no = |what: &str| {
        Refusal::bad(format!("{} is not a valid {what}, the type of {}", value, asked.key))
    };
    Ok(match (kind, value) {
        (Some("bool"), Json::Bool(b)) => Value::Bool(*b),
        (Some("int"), Json::Number(number)) => {
            Value::Int(number.as_i64().ok_or_else(|| no("int"))?)
        }
        (Some("float"), value) => {
            Value::Float(rnet_format::float_from_json(value).map_err(|_| no("float"))?)
        }
        (Some("str"), Json::String(text)) => Value::Str(text.clone()),
        (Some("bytes"), Json::String(text)) => {
            Value::Bytes(from_base64(text).map_err(|why| no(&format!("bytes ({why})")))?)
        }
        (Some("json"), value) => Value::json(value.to_string())?,
        (Some("list"), Json::Array(items)) => Value::List(elements(items)?),
        (Some("set"), Json::Array(items)) => Value::set(elements(items)?),
        (Some(kind @ ("bool" | "int" | "str" | "bytes" | "list" | "set")), _) => {
            return Err(no(kind));
        }
        (Some(name), value) => {
            let found = message.filter(|found| found.desc().name() == Some(name));
            let found = found.ok_or_else(|| {
                Refusal::bad(format!(
                    "{} does not hold a {name}: the dashboard can change a message only in a key that \
                     already holds that type",
                    asked.key
                ))
            })?;
            let bytes = encode(found, value).map_err(|why| no(&format!("{name}: {why}")))?;
            Value::Message(StateMessage::new(found.clone(), bytes)?)
        }
        (None, value) => infer_value(value)?,
    })
}

fn infer_value(value: &Json) -> Result<Value, Refusal> {
    match value {
        Json::Array(_) => Ok(Value::json(value.to_string())?),
        other => from_json(other).map_err(Refusal::bad),
    }
}

/// The elements of a list or set.
fn elements(items: &[Json]) -> Result<Vec<Value>, Refusal> {
    items.iter().map(from_json).collect::<Result<_, _>>().map_err(Refusal::bad)
}

#[derive(Deserialize)]
struct Param {
    node: String,
    name: String,
    #[serde(default)]
    value: Json,
}

/// A parameter of a node of this host, or of another host, which validates it again.
struct ParamHome {
    /// The name and the state of the other host, if any.
    host: Option<(String, RemoteState)>,
    node: NodeName,
}

impl ParamHome {
    fn of(operator: &OperatorNode, node: &str) -> Result<ParamHome, Refusal> {
        let (host, node) = match split_host(node) {
            Some((host, node)) => (Some((host.to_owned(), operator.state_of(host)?)), node),
            None => (None, node),
        };
        Ok(ParamHome { host, node: NodeName::new(node)? })
    }

    /// The node as pages name it.
    fn words(&self) -> String {
        match &self.host {
            Some((host, _)) => format!("@{host}{}", self.node),
            None => self.node.to_string(),
        }
    }

    fn info(&self, operator: &OperatorNode, name: &str) -> rnet::Result<Option<ParamInfo>> {
        let Some((_, state)) = &self.host else { return operator.state()?.param(&self.node, name) };
        let key = rnet::param::key(&self.node, name)?;
        Ok(state.params()?.into_iter().find(|info| info.key == key))
    }

    fn now(&self, operator: &OperatorNode, name: &str) -> Answer {
        let document = |info| in_seconds(documents::param(self.node.as_str(), name, &info));
        let param = self.info(operator, name)?.map(document);
        let param = param.map(|param| match &self.host {
            Some((host, _)) => of_host(host, param),
            None => param,
        });
        Ok(json!({"param": param}))
    }
}

/// `param.set`.
pub fn param_set(operator: &OperatorNode, fields: Json) -> Answer {
    let Param { node, name, value } = fields_of(fields)?;
    let home = ParamHome::of(operator, &node)?;
    let found = home.info(operator, &name)?;
    let description = found.as_ref().and_then(|info| info.description.as_ref());
    let node = home.words();
    let Some(description) = description else {
        return Err(Refusal::not_found(format!("{node} has not declared a parameter {name}")));
    };
    let value = match &value {
        Json::Array(items) => Value::List(elements(items)?),
        Json::Object(_) | Json::Null => {
            return Err(Refusal::bad(format!(
                "{value} is not a valid value for parameter {name} of {node}"
            )));
        }
        value => infer_value(value)?,
    };
    let value = description.adapt(value);
    description
        .check(&value)
        .map_err(|why| Refusal::new("refused", format!("parameter {name} of {node}: {why}")))?;
    let key = rnet::param::key(&home.node, &name)?;
    match &home.host {
        Some((_, state)) => state.set(&key, value)?,
        None => operator.state()?.put(&key).set(value)?,
    };
    home.now(operator, &name)
}

/// `param.reset`.
pub fn param_reset(operator: &OperatorNode, fields: Json) -> Answer {
    let Param { node, name, .. } = fields_of(fields)?;
    let home = ParamHome::of(operator, &node)?;
    if let Some((host, _)) = &home.host {
        // Only its own host knows its declaration, and it has no service that resets it.
        let why = format!(
            "{name} of {node} can be reset only on its host: run rnet param reset {} {name} on {host}, or \
             set it to its default here",
            home.node
        );
        return Err(Refusal::new("refused", why));
    }
    operator.state()?.reset_param(&home.node, &name)?;
    home.now(operator, &name)
}
