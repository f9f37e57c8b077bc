//! `rnet param load`.

use std::path::Path;

use serde_json::json;

use super::args::LoadArgs;
use super::find;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{self, InputLimit};
use crate::session::join;
use crate::signal;
use rnet_format::params::settings;
use rnet_format::params::update::{ParamUpdate, is_ros_default, resolve_updates, set_all};
use rnet_format::value::to_json;
use rnet_format::yaml::Problem;
use rnet_format::yaml::tree::{self, MAX_YAML_LEN_BYTES};

const PARAM_FILE_LIMIT: InputLimit =
    InputLimit::new(MAX_YAML_LEN_BYTES, "a file of parameters", "MAX_YAML_LEN_BYTES");

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

/// Reads the file as text.
fn read_text(path: &Path) -> Outcome<String> {
    String::from_utf8(input::read(path, &PARAM_FILE_LIMIT)?)
        .map_err(|_| Failure::Failed(format!("{} is not valid UTF-8", input::display_name(path))))
}

/// Reports each problem with its line.
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
