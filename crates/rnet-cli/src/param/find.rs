//! Finds the parameter that an argument names.

use rnet::NodeName;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::StateSource;
use crate::shared_args::NodeArg;
use rnet_format::params::update::parameter_hint;
use rnet_format::suggestions::did_you_mean;
pub use rnet_monitor::documents::{NodeParam, params_by_node};

/// All present parameters; empty if the domain has no state.
pub fn list_params(context: &Context, own_node: &NodeArg) -> Outcome<Vec<NodeParam>> {
    list_params_on(context, None, own_node)
}

/// The same for another host, or for this one if no host is named.
pub fn list_params_on(
    context: &Context,
    host: Option<&str>,
    own_node: &NodeArg,
) -> Outcome<Vec<NodeParam>> {
    params_of(&StateSource::observe(context, host, "param", own_node)?)
}

/// The parameters of a state.
pub fn params_of(source: &StateSource) -> Outcome<Vec<NodeParam>> {
    Ok(match source {
        StateSource::None => Vec::new(),
        StateSource::Local(session) => params_by_node(session.state.params()?),
        StateSource::Remote(state, _) => params_by_node(state.params()?),
    })
}

/// The parameters of a node.
///
/// # Errors
/// The node has none; suggests a node with a similar name.
pub fn of_node(all: Vec<NodeParam>, domain: &str, node: &NodeName) -> Outcome<Vec<NodeParam>> {
    let (of_node, others): (Vec<NodeParam>, Vec<NodeParam>) =
        all.into_iter().map(|named| seen_from(node, named)).partition(|(n, ..)| n == node.as_str());
    if !of_node.is_empty() {
        return Ok(of_node);
    }
    let nodes = others.iter().map(|(n, ..)| n.as_str());
    let hint =
        did_you_mean(node.as_str(), nodes).unwrap_or_else(|| "see rnet param list".to_owned());
    Err(Failure::Failed(format!("{node} has no parameters in domain {domain}; {hint}")))
}

/// One parameter of a node: `/arm pid/gain`, or as one argument `/arm/pid/gain`.
///
/// # Errors
/// It does not exist; suggests one with a similar name.
pub fn find_param(
    mut all: Vec<NodeParam>,
    domain: &str,
    node: &NodeName,
    name: Option<&str>,
) -> Outcome<NodeParam> {
    let name = name.map(slashed);
    let path = format!("{node}{}", name.as_deref().unwrap_or_default());
    // For an undeclared parameter, it is unknown where the node's name ends.
    let found = |(n, m, _): &NodeParam| path.strip_prefix(n.as_str()) == Some(m.as_str());
    if let Some(at) = all.iter().position(found) {
        let found = all.swap_remove(at);
        return Ok(if name.is_some() { seen_from(node, found) } else { found });
    }
    if name.is_none() && all.iter().all(|(n, ..)| n != node.as_str()) {
        let paths: Vec<String> = all.iter().map(|(n, m, _)| format!("{n}{m}")).collect();
        let hint = did_you_mean(&path, paths.iter().map(String::as_str))
            .unwrap_or_else(|| "see rnet param list".to_owned());
        let what = format!("parameter {path} not found in domain {domain}; {hint}");
        return Err(Failure::Failed(what));
    }
    let of_node = of_node(all, domain, node)?;
    let names = of_node.iter().map(|(_, n, _)| n.as_str());
    Err(match name {
        Some(name) => {
            let hint = parameter_hint(&name, names);
            Failure::Failed(format!("{node} has no parameter {name}; {hint}"))
        }
        None => {
            let names: Vec<&str> = names.collect();
            Failure::Usage(format!("give a parameter of {node}: it has {}", names.join(", ")))
        }
    })
}

/// A name with slashes, for one in the ROS 2 notation with dots.
pub fn slashed(name: &str) -> String {
    format!("/{}", name.strip_prefix('/').unwrap_or(name).replace('.', "/"))
}

/// An undeclared parameter belongs to `node` if its path says so.
fn seen_from(node: &NodeName, (n, m, info): NodeParam) -> NodeParam {
    let path = format!("{n}{m}");
    match path.strip_prefix(node.as_str()) {
        Some(name) if info.description.is_none() && name.starts_with('/') => {
            (node.to_string(), name.to_owned(), info)
        }
        _ => (n, m, info),
    }
}
