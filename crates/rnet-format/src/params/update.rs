//! What a file of parameters sets in a domain.

use std::collections::BTreeMap;

use rnet::NodeName;
use rnet::param::{ParamDescription, ParamInfo, key};
use rnet::state::{State, Value};

use super::settings::Setting;
use super::{text, value};
use crate::suggestions::did_you_mean;
use crate::yaml::Problem;

/// A parameter: node, name and what is known of it.
pub type NodeParam = (String, String, ParamInfo);

/// A value that is to be set.
pub struct ParamUpdate {
    /// The node.
    pub node: String,
    /// The parameter.
    pub name: String,
    /// The new value.
    pub value: Value,
    /// Whether the node has declared it.
    pub declared: bool,
    /// The line that says so, and whether it names this very node.
    pub line: usize,
    is_exact_node: bool,
}

/// Whether `ros2 param dump` has written it, and no node here has declared it.
#[must_use]
pub fn is_ros_default(setting: &Setting, all: &[NodeParam]) -> bool {
    let declared = |(node, name, info): &NodeParam| {
        info.description.is_some() && *name == setting.name && setting.is_for(node)
    };
    setting.is_of_every_ros_node() && !all.iter().any(declared)
}

/// What the file sets, by key.
///
/// # Errors
/// All that it cannot set.
pub fn resolve_updates(
    settings: Vec<Setting>,
    all: &[NodeParam],
    undeclared: bool,
) -> Result<BTreeMap<String, ParamUpdate>, Vec<Problem>> {
    let (mut updates, mut problems) = (BTreeMap::<String, ParamUpdate>::new(), Vec::new());
    for setting in settings {
        let targets = match targets(&setting, all, undeclared) {
            Ok(targets) => targets,
            Err(why) => {
                problems.push(Problem::new(setting.line, why));
                continue;
            }
        };
        let is_exact_node = !setting.is_for_many();
        for (key, node, description) in targets {
            let value = value::value(&setting.value, description).and_then(|value| {
                let checked = description.map_or(Ok(()), |description| description.check(&value));
                checked
                    .map(|()| value.clone())
                    .map_err(|why| format!("{} {why}", text::line(&value)))
            });
            let (name, line) = (setting.name.clone(), setting.line);
            match value {
                Err(why) => {
                    problems.push(Problem::new(line, format!("parameter {name} of {node}: {why}")));
                }
                // What names the node goes before what is said of many, wherever it stands.
                Ok(_)
                    if !is_exact_node
                        && updates.get(&key).is_some_and(|before| before.is_exact_node) => {}
                Ok(value) => {
                    let declared = description.is_some();
                    updates.insert(
                        key,
                        ParamUpdate { node, name, value, declared, line, is_exact_node },
                    );
                }
            }
        }
    }
    if problems.is_empty() { Ok(updates) } else { Err(problems) }
}

/// Key, node and description of each parameter that a line means.
type Target<'a> = (String, String, Option<&'a ParamDescription>);

fn targets<'a>(
    setting: &Setting,
    all: &'a [NodeParam],
    undeclared: bool,
) -> Result<Vec<Target<'a>>, String> {
    let declared = |(_, _, info): &&NodeParam| info.description.is_some();
    if setting.is_for_many() {
        let fits = |(node, name, _): &&NodeParam| *name == setting.name && setting.is_for(node);
        let found: Vec<Target> = all
            .iter()
            .filter(declared)
            .filter(fits)
            .map(|(node, _, info)| (info.key.clone(), node.clone(), info.description.as_ref()))
            .collect();
        return match found.is_empty() {
            true => Err(format!(
                "no node that matches {} has declared parameter {}",
                setting.node, setting.name
            )),
            false => Ok(found),
        };
    }
    let node = NodeName::new(&setting.node).map_err(|e| e.to_string())?;
    let key = key(&node, &setting.name).map_err(|e| e.to_string())?;
    let of_node: Vec<&NodeParam> =
        all.iter().filter(declared).filter(|(n, ..)| n == node.as_str()).collect();
    let found = of_node.iter().find(|(_, name, _)| *name == setting.name);
    if found.is_none() && !of_node.is_empty() && !undeclared {
        let hint = parameter_hint(&setting.name, of_node.iter().map(|(_, name, _)| name.as_str()));
        return Err(format!("{node} has no parameter {}; {hint}", setting.name));
    }
    let description = found.and_then(|(_, _, info)| info.description.as_ref());
    Ok(vec![(key, node.as_str().to_owned(), description)])
}

/// Sets all, or none.
///
/// # Errors
/// The state refuses a value.
pub fn set_all(state: &State, updates: &BTreeMap<String, ParamUpdate>) -> rnet::Result<()> {
    let mut transaction = state.transaction();
    for (key, ParamUpdate { value, declared, .. }) in updates {
        let put = transaction.put(key);
        let put = if *declared { put } else { put.change_type() };
        put.set(value.clone())?;
    }
    transaction.commit()?;
    Ok(())
}

/// What may have been meant by a name that a node does not have.
#[must_use]
pub fn parameter_hint<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    did_you_mean(name, names.iter().copied())
        .unwrap_or_else(|| format!("it has {}", names.join(", ")))
}
