//! `rnet param set` and `rnet param reset`.

use rnet::param::{ParamInfo, key};
use rnet::state::Value;
use rnet::{Error, NodeName};
use serde_json::json;

use super::args::{ResetArgs, SetArgs};
use super::yaml::{tree, value};
use super::{Session, find, join, join_to_look, text};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::value::to_json;

pub fn run(context: &mut Context, args: &SetArgs) -> Outcome {
    let name = find::slashed(&args.name);
    let key = key(&args.node, &name)?;
    let session = join(context, &args.me)?;
    let before = session.state.param(&args.node, &name)?;
    let (value, change_type) = match before.as_ref().and_then(|info| info.description.as_ref()) {
        Some(description) => {
            let value = description.parse(&args.value).map_err(|why| Error::BadValue {
                what: words(&args.node, &name),
                why: format!("{:?} {why}", args.value),
            })?;
            (value, false)
        }
        None => (guess(context, args, &session, &name)?, true),
    };
    let put = session.state.put(&key);
    let put = if change_type { put.change_type() } else { put };
    put.set(value)?;
    tell(context, &session, &args.node, &name, before.as_ref())
}

pub fn reset(context: &mut Context, args: &ResetArgs) -> Outcome {
    let domain = context.domain()?.id().to_owned();
    let Some(session) = join_to_look(context, &args.me)? else {
        return find::of_node(Vec::new(), &domain, &args.node).map(drop);
    };
    let all = find::all(Some(&session.state))?;
    let (_, name, before) = find::one(all, &domain, &args.node, &args.name)?;
    session.state.reset_param(&args.node, &name)?;
    tell(context, &session, &args.node, &name, Some(&before))
}

/// The value of a parameter that no node has declared: what it looks like.
fn guess(context: &Context, args: &SetArgs, session: &Session, name: &str) -> Outcome<Value> {
    let all = find::all(Some(&session.state))?;
    let declared: Vec<&str> = all
        .iter()
        .filter(|(node, _, info)| node == args.node.as_str() && info.description.is_some())
        .map(|(_, name, _)| name.as_str())
        .collect();
    if !declared.is_empty() && !args.undeclared {
        let hint = find::hint(name, declared.into_iter());
        let node = &args.node;
        return Err(Failure::Failed(format!(
            "{node} has no parameter {name}; {hint} (--undeclared sets it all the same)"
        )));
    }
    let bad = |why: String| {
        Failure::Failed(format!("{:?} is no value of a parameter: {why}", args.value))
    };
    let tree = tree::read(&args.value).map_err(|problem| bad(problem.why))?;
    let tree = tree.ok_or_else(|| bad("it is empty".to_owned()))?;
    let value = value::value(&tree, None).map_err(bad)?;
    let what = words(&args.node, name);
    context.say(format_args!("{what} is not declared yet; it is checked when its node starts"));
    Ok(value)
}

fn words(node: &NodeName, name: &str) -> String {
    format!("parameter {name} of {node}")
}

/// What it is now: for people on stderr, for programs as a document.
fn tell(
    context: &mut Context,
    session: &Session,
    node: &NodeName,
    name: &str,
    before: Option<&ParamInfo>,
) -> Outcome {
    let Some(now) = session.state.param(node, name)? else { return Ok(()) };
    let was = before.and_then(ParamInfo::value);
    if context.json() {
        let mut document = text::document(node.as_str(), name, &now);
        document["was"] = json!(was.map(to_json));
        return context.document(&document);
    }
    let shown = now.value().map(text::line).unwrap_or_default();
    let was = was.map(|was| format!(" (was {})", text::line(was))).unwrap_or_default();
    context.say(format_args!("{} is {shown}{was}", words(node, name)));
    Ok(())
}
