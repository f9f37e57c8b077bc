//! `rnet param load`.

use std::collections::BTreeMap;
use std::path::Path;

use rnet::NodeName;
use rnet::param::{ParamDescription, key};
use rnet::state::{State, Value};
use serde_json::json;

use super::args::LoadArgs;
use super::find::{self, NodeParam};
use super::settings::{self, Setting};
use super::{text, value};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::session::join;
use crate::signal;
use rnet_format::value::to_json;
use rnet_format::yaml::Problem;
use rnet_format::yaml::tree::{self, MAX_YAML_LEN_BYTES};

const PARAM_FILE_LIMIT: InputLimit =
    InputLimit::new(MAX_YAML_LEN_BYTES, "a file of parameters", "MAX_YAML_LEN_BYTES");

/// A value that is to be set.
struct ParamUpdate {
    node: String,
    name: String,
    value: Value,
    declared: bool,
    /// The line that says so, and whether it names this very node.
    line: usize,
    is_exact_node: bool,
}

pub fn run(context: &mut Context, args: &LoadArgs) -> Outcome {
    let text = read_text(&args.file)?;
    let settings = tree::read(&text).map_err(|problem| vec![problem]).and_then(settings::parse);
    let settings = settings.map_err(|problems| report_problems(context, &args.file, problems))?;
    let session = join(context, "param", &args.own_node)?;
    let all = find::params_by_node(session.state.params()?);
    let (ros_own, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|setting| is_ros_default(setting, &all));
    let updates = resolve_updates(settings, &all, args.undeclared);
    let updates = updates.map_err(|problems| report_problems(context, &args.file, problems))?;
    signal::check()?;
    set_all(&session.state, &updates)?;
    let later: Vec<&ParamUpdate> = updates.values().filter(|updates| !updates.declared).collect();
    for ParamUpdate { node, name, line, .. } in later {
        context.eprintln(format_args!(
            "{}:{line}: parameter {name} of {node} is not declared yet; it is checked when its node starts",
            args.file.display()
        ));
    }
    for setting in &ros_own {
        context.eprintln(format_args!(
            "{}:{}: parameter {} of {} was skipped: it exists in every ROS 2 node, but this node has not declared it",
            args.file.display(),
            setting.line,
            setting.name,
            setting.node
        ));
    }
    if context.json() {
        let set: Vec<_> = updates
            .values()
            .map(|w| json!({"node": w.node, "name": w.name, "value": to_json(&w.value), "line": w.line}))
            .collect();
        return context.document(&json!({"set": set}));
    }
    let plural = if updates.len() == 1 { "" } else { "s" };
    context.eprintln(format_args!("set {} parameter{plural}", updates.len()));
    Ok(())
}

/// The file as text.
fn read_text(path: &Path) -> Outcome<String> {
    String::from_utf8(input::read(path, &PARAM_FILE_LIMIT)?)
        .map_err(|_| Failure::Failed(format!("{} is not valid UTF-8", input::display_name(path))))
}

/// Whether `ros2 param dump` has written it, and no node here has declared it.
fn is_ros_default(setting: &Setting, all: &[NodeParam]) -> bool {
    let declared = |(node, name, info): &NodeParam| {
        info.description.is_some() && *name == setting.name && setting.is_for(node)
    };
    setting.is_of_every_ros_node() && !all.iter().any(declared)
}

/// Tells each problem with its line.
fn report_problems(context: &Context, file: &Path, mut problems: Vec<Problem>) -> Failure {
    problems.sort_by_key(|problem| problem.line);
    for Problem { line, why } in &problems {
        context.eprintln(format_args!("{}:{line}: {why}", file.display()));
    }
    let lines = if problems.len() == 1 { "line" } else { "lines" };
    Failure::Failed(format!(
        "nothing was set: {} {lines} of {} cannot be set",
        problems.len(),
        file.display()
    ))
}

/// What the file sets, by key; or all that it cannot.
fn resolve_updates(
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
        let hint = find::hint(&setting.name, of_node.iter().map(|(_, name, _)| name.as_str()));
        return Err(format!("{node} has no parameter {}; {hint}", setting.name));
    }
    let description = found.and_then(|(_, _, info)| info.description.as_ref());
    Ok(vec![(key, node.as_str().to_owned(), description)])
}

/// Sets all, or none.
fn set_all(state: &State, updates: &BTreeMap<String, ParamUpdate>) -> Outcome {
    let mut transaction = state.transaction();
    for (key, ParamUpdate { value, declared, .. }) in updates {
        let put = transaction.put(key);
        let put = if *declared { put } else { put.change_type() };
        put.set(value.clone())?;
    }
    transaction.commit()?;
    Ok(())
}
