//! `rnet param set`, `reset` and `delete`.

use rnet::param::{ParamInfo, key};
use rnet::state::State;
use rnet::{Error, NodeName};
use serde_json::json;

use super::args::{ParamArgs, SetArgs};
use super::find::{self, NodeParam};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::{Session, StateSource, join, join_as_observer};
use crate::snapshot::not_found;
use rnet_format::params::update::parameter_hint;
use rnet_format::params::{text, value};
use rnet_format::value::to_json;

pub fn run(context: &mut Context, args: &SetArgs) -> Outcome {
    let host = args.target.host.as_deref();
    let source = StateSource::observe(context, host, "param", &args.own_node)?;
    let all = find::params_of(&source)?;
    let (node, name, text) = match &args.value {
        Some(value) => (args.node.clone(), find::slashed(&args.name), value),
        // The first argument is node and parameter, and the second is the value.
        None => {
            let name = find::slashed(&args.name);
            if all.iter().any(|(n, m, _)| n == args.node.as_str() && *m == name) {
                let what = format!("VALUE is missing: rnet param set {} {name} VALUE", args.node);
                return Err(Failure::Usage(what));
            }
            let domain = match host {
                Some(host) => format!("of host {host}"),
                None => context.domain()?.id().to_owned(),
            };
            let found = find::find_param(all.clone(), &domain, &args.node, None);
            let (node, name, _) = match (found, args.node.as_str().rsplit_once('/')) {
                (Err(_), Some((node, name))) if args.undeclared && !node.is_empty() => {
                    return Err(Failure::Usage(format!(
                        "with --undeclared, give node and name as two arguments: rnet param set {node} {name} \
                         {} --undeclared",
                        args.name
                    )));
                }
                (found, _) => found?,
            };
            (NodeName::new(&node)?, name, &args.name)
        }
    };
    let (key, mut what) = (key(&node, &name)?, display_name(&node, &name));
    if let Some(host) = host {
        what += &format!(" on host {host}");
    }
    // For an undeclared parameter, it is unknown where the node's name ends.
    let path = format!("{node}{name}");
    let before = all.iter().find(|(n, m, _)| path.strip_prefix(n.as_str()) == Some(m));
    let before = before.map(|(.., info)| info);
    let description = before.and_then(|info| info.description.as_ref());
    if description.is_none() && !args.undeclared {
        return Err(match host {
            None => undeclared_error(context, &all, &node, &name)?,
            Some(host) => Failure::Failed(format!(
                "{what} is not declared by any node; see rnet param list --host {host} (--undeclared sets it anyway)"
            )),
        });
    }
    let value = value::parse_text(text, description)
        .map_err(|why| Error::BadValue { what: what.clone(), why: format!("{text:?}: {why}") })?;
    if description.is_none() {
        context.eprintln(format_args!(
            "{what} is not declared yet; it is checked when its node starts"
        ));
    }
    match source.join(context, "param", &args.own_node)? {
        StateSource::None => Ok(()),
        StateSource::Local(session) => {
            let put = session.state.put(&key);
            let put = if description.is_none() { put.change_type() } else { put };
            put.set(value)?;
            report_value(context, &session, &node, &name, before)
        }
        // The other host checks it.
        StateSource::Remote(state, _) => {
            let put = state.put(&key);
            let put = if description.is_none() { put.change_type() } else { put };
            let revision = put.set(&value)?;
            let was = before.and_then(ParamInfo::value);
            if context.json() {
                return context.document(&json!({
                    "host": host, "node": node.as_str(), "name": name, "value": to_json(&value),
                    "was": was.map(to_json), "revision": revision,
                }));
            }
            let was = was.map(|was| format!(" (was {})", text::line(was))).unwrap_or_default();
            context.eprintln(format_args!("{what} is {}{was}", text::line(&value)));
            Ok(())
        }
    }
}

pub fn reset(context: &mut Context, args: &ParamArgs) -> Outcome {
    let (session, node, name, before) = existing_param(context, args)?;
    if before.description.is_none() {
        return Err(Failure::Failed(format!(
            "no node has declared {}, so it has no default; delete it with rnet param delete",
            display_name(&node, &name)
        )));
    }
    session.state.reset_param(&node, &name)?;
    report_value(context, &session, &node, &name, Some(&before))
}

pub fn delete(context: &mut Context, args: &ParamArgs) -> Outcome {
    let (session, node, name, before) = existing_param(context, args)?;
    let what = display_name(&node, &name);
    if before.description.is_some() {
        return Err(Failure::Failed(format!(
            "{what} is declared and cannot be deleted; reset it to its default with rnet param reset"
        )));
    }
    session.state.delete(&before.key)?;
    if context.json() {
        return context.document(&json!({"deleted": before.key}));
    }
    let was = before.value().map(text::line).unwrap_or_default();
    context.eprintln(format_args!("{what} was deleted (was {was})"));
    Ok(())
}

/// An existing parameter.
fn existing_param(
    context: &Context,
    args: &ParamArgs,
) -> Outcome<(Session, NodeName, String, ParamInfo)> {
    let session = join_as_observer(context, "param", &args.own_node)?;
    let state = session.as_ref().map(|session| &session.state);
    let all = find::params_by_node(state.map(State::params).transpose()?.unwrap_or_default());
    let (node, name, before) =
        find::find_param(all, context.domain()?.id(), &args.node, args.name.as_deref())?;
    // The parameter was found, so the domain has state.
    let session = session.map_or_else(|| join(context, "param", &args.own_node), Ok)?;
    Ok((session, NodeName::new(&node)?, name, before))
}

/// The error for a parameter that no node has declared.
fn undeclared_error(
    context: &Context,
    all: &[NodeParam],
    node: &NodeName,
    name: &str,
) -> Outcome<Failure> {
    let mut domain = context.domain()?;
    let of_node =
        all.iter().filter(|(n, _, info)| n == node.as_str() && info.description.is_some());
    let declared: Vec<&str> = of_node.map(|(_, name, _)| name.as_str()).collect();
    let running = domain.snapshot()?;
    let running: Vec<&str> = running.nodes.iter().map(|node| node.meta.name.as_str()).collect();
    let why = if !declared.is_empty() {
        let hint = parameter_hint(name, declared.into_iter());
        format!("{node} has no parameter {name}; {hint}")
    } else if running.contains(&node.as_str()) {
        format!("{node} has not declared any parameters")
    } else {
        let known = all.iter().map(|(node, ..)| node.as_str());
        not_found("node", domain.id(), node.as_str(), known.chain(running)).to_string()
    };
    Ok(Failure::Failed(format!("{why} (--undeclared sets it anyway)")))
}

fn display_name(node: &NodeName, name: &str) -> String {
    format!("parameter {name} of {node}")
}

/// Reports the new value: as text on stderr, or as a JSON document.
fn report_value(
    context: &mut Context,
    session: &Session,
    node: &NodeName,
    name: &str,
    before: Option<&ParamInfo>,
) -> Outcome {
    let Some(now) = session.state.param(node, name)? else { return Ok(()) };
    let was = before.and_then(ParamInfo::value);
    if context.json() {
        let mut document = super::document(node.as_str(), name, &now);
        document["was"] = json!(was.map(to_json));
        return context.document(&document);
    }
    let shown = now.value().map(text::line).unwrap_or_default();
    let was = was.map(|was| format!(" (was {})", text::line(was))).unwrap_or_default();
    context.eprintln(format_args!("{} is {shown}{was}", display_name(node, name)));
    Ok(())
}
