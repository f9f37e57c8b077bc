//! `rnet action list` and `info`.

use serde_json::json;

use super::args::ActionListArgs;
use super::{names, servers, types_of};
use crate::context::Context;
use crate::domain;
use crate::failure::Outcome;
use crate::topic::{look, no_such};
use rnet_monitor::link::{host_of, own_host};

pub fn run(context: &mut Context, args: &ActionListArgs) -> Outcome {
    let (domain, snapshot) = look(context)?;
    let names = names(&snapshot);
    if names.is_empty() {
        domain::tell_none(context, "actions")?;
    }
    let servers = servers(&snapshot);
    // Servers that do not agree show the types of the first.
    let actions = names.into_iter().filter_map(|name| {
        let mut of_name = servers.iter().filter(|server| server.service == name);
        let types = of_name.clone().find_map(types_of)?;
        let types = types.map(|of| of.desc.name().unwrap_or("raw"));
        Some((name, types, of_name.by_ref().count()))
    });
    let actions: Vec<_> = actions.collect();
    if context.json() {
        let actions = actions.into_iter().map(|(name, [goal, feedback, result], servers)| {
            let types = json!({"goal": goal, "feedback": feedback, "result": result});
            json!({"action": name, "types": types, "servers": servers})
        });
        let actions: Vec<_> = actions.collect();
        return context.document(&json!({"domain": domain.id(), "actions": actions}));
    }
    for (name, [goal, feedback, result], _) in actions {
        match args.show_types {
            true => context.line(format_args!("{name} [{goal} -> {feedback} -> {result}]"))?,
            false => context.line(format_args!("{name}"))?,
        }
    }
    Ok(())
}

pub fn info(context: &mut Context, action: &str) -> Outcome {
    let (domain, snapshot) = look(context)?;
    let own = own_host(&snapshot);
    let names = names(&snapshot);
    if !names.contains(&action) {
        return Err(no_such("action", domain.id(), action, names.into_iter()));
    }
    let servers = servers(&snapshot).into_iter().filter(|server| server.service == action);
    let servers: Vec<_> = servers.filter_map(|server| Some((server, types_of(&server)?))).collect();
    if context.json() {
        let servers = servers.iter().map(|(server, [goal, feedback, result])| {
            let (host, node) = host_of(server.node());
            json!({
                "node": node,
                "host": host.unwrap_or(&own),
                "goal": goal,
                "feedback": feedback,
                "result": result,
                "clients": server.clients,
            })
        });
        let servers: Vec<_> = servers.collect();
        return context.document(&json!({"action": action, "servers": servers}));
    }
    context.line(format_args!("Action: {action}"))?;
    for (server, types) in &servers {
        let (host, node) = host_of(server.node());
        let [goal, feedback, result] = types.map(|of| of.desc.name().unwrap_or("raw"));
        context.heading(&format!("Server: {node}"))?;
        context.line(format_args!("  host: {}", host.unwrap_or(&own)))?;
        context.line(format_args!("  goal: {goal}"))?;
        context.line(format_args!("  feedback: {feedback}"))?;
        context.line(format_args!("  result: {result}"))?;
        context.line(format_args!("  clients: {}", server.clients))?;
    }
    Ok(())
}
