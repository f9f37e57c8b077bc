//! `rnet param load`.

use std::collections::BTreeMap;
use std::path::Path;

use rnet::NodeName;
use rnet::param::{ParamDescription, key};
use rnet::state::{State, Value};
use serde_json::json;

use super::args::LoadArgs;
use super::find::{self, Named};
use super::settings::{self, Setting};
use super::{text, value};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Limit};
use crate::session::join;
use crate::signal;
use crate::value::to_json;
use crate::yaml::Problem;
use crate::yaml::tree::{self, MAX_YAML_LEN_BYTES};

const FILE: Limit = Limit::new(MAX_YAML_LEN_BYTES, "a file of parameters", "MAX_YAML_LEN_BYTES");

/// A value that is to be set.
struct Wanted {
    node: String,
    name: String,
    value: Value,
    declared: bool,
    /// The line that says so, and whether it names this very node.
    line: usize,
    by_name: bool,
}

pub fn run(context: &mut Context, args: &LoadArgs) -> Outcome {
    let text = content(&args.file)?;
    let settings = tree::read(&text).map_err(|problem| vec![problem]).and_then(settings::of);
    let settings = settings.map_err(|problems| tell(context, &args.file, problems))?;
    let session = join(context, "param", &args.me)?;
    let all = find::named(session.state.params()?);
    let (ros_own, settings): (Vec<_>, Vec<_>) =
        settings.into_iter().partition(|setting| is_of_ros_alone(setting, &all));
    let wanted = resolve(settings, &all, args.undeclared);
    let wanted = wanted.map_err(|problems| tell(context, &args.file, problems))?;
    signal::check()?;
    set(&session.state, &wanted)?;
    let later: Vec<&Wanted> = wanted.values().filter(|wanted| !wanted.declared).collect();
    for Wanted { node, name, line, .. } in later {
        context.say(format_args!(
            "{}:{line}: parameter {name} of {node} is not declared yet; it is checked when its node starts",
            args.file.display()
        ));
    }
    for setting in &ros_own {
        context.say(format_args!(
            "{}:{}: parameter {} of {} was skipped: it exists in every ROS 2 node, but this node has not declared it",
            args.file.display(),
            setting.line,
            setting.name,
            setting.node
        ));
    }
    if context.json() {
        let set: Vec<_> = wanted
            .values()
            .map(|w| json!({"node": w.node, "name": w.name, "value": to_json(&w.value), "line": w.line}))
            .collect();
        return context.document(&json!({"set": set}));
    }
    let plural = if wanted.len() == 1 { "" } else { "s" };
    context.say(format_args!("set {} parameter{plural}", wanted.len()));
    Ok(())
}

/// The file as text.
fn content(path: &Path) -> Outcome<String> {
    String::from_utf8(input::read(path, &FILE)?)
        .map_err(|_| Failure::Failed(format!("{} is not valid UTF-8", input::shown(path))))
}

/// Whether `ros2 param dump` has written it, and no node here has declared it.
fn is_of_ros_alone(setting: &Setting, all: &[Named]) -> bool {
    let declared = |(node, name, info): &Named| {
        info.description.is_some() && *name == setting.name && setting.is_for(node)
    };
    setting.is_of_every_ros_node() && !all.iter().any(declared)
}

/// Tells each problem with its line.
fn tell(context: &Context, file: &Path, mut problems: Vec<Problem>) -> Failure {
    problems.sort_by_key(|problem| problem.line);
    for Problem { line, why } in &problems {
        context.say(format_args!("{}:{line}: {why}", file.display()));
    }
    let lines = if problems.len() == 1 { "line" } else { "lines" };
    Failure::Failed(format!(
        "nothing was set: {} {lines} of {} cannot be set",
        problems.len(),
        file.display()
    ))
}

/// What the file sets, by key; or all that it cannot.
fn resolve(
    settings: Vec<Setting>,
    all: &[Named],
    undeclared: bool,
) -> Result<BTreeMap<String, Wanted>, Vec<Problem>> {
    let (mut wanted, mut problems) = (BTreeMap::<String, Wanted>::new(), Vec::new());
    for setting in settings {
        let targets = match targets(&setting, all, undeclared) {
            Ok(targets) => targets,
            Err(why) => {
                problems.push(Problem::new(setting.line, why));
                continue;
            }
        };
        let by_name = !setting.is_for_many();
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
                Ok(_) if !by_name && wanted.get(&key).is_some_and(|before| before.by_name) => {}
                Ok(value) => {
                    let declared = description.is_some();
                    wanted.insert(key, Wanted { node, name, value, declared, line, by_name });
                }
            }
        }
    }
    if problems.is_empty() { Ok(wanted) } else { Err(problems) }
}

/// Key, node and description of each parameter that a line means.
type Target<'a> = (String, String, Option<&'a ParamDescription>);

fn targets<'a>(
    setting: &Setting,
    all: &'a [Named],
    undeclared: bool,
) -> Result<Vec<Target<'a>>, String> {
    let declared = |(_, _, info): &&Named| info.description.is_some();
    if setting.is_for_many() {
        let fits = |(node, name, _): &&Named| *name == setting.name && setting.is_for(node);
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
    let of_node: Vec<&Named> =
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
fn set(state: &State, wanted: &BTreeMap<String, Wanted>) -> Outcome {
    let mut transaction = state.transaction();
    for (key, Wanted { value, declared, .. }) in wanted {
        let put = transaction.put(key);
        let put = if *declared { put } else { put.change_type() };
        put.set(value.clone())?;
    }
    transaction.commit()?;
    Ok(())
}
