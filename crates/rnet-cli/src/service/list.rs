//! `rnet service list`, `info` and `type`.

use serde_json::json;

use super::args::ServiceListArgs;
use super::{look_at, names, servers_of, type_names};
use crate::context::Context;
use crate::failure::Outcome;
use crate::topic::look;
use crate::{domain, table};
use rnet_monitor::link::{host_of, own_host};

pub fn run(context: &mut Context, args: &ServiceListArgs) -> Outcome {
    let (domain, snapshot) = look(context)?;
    let names = names(&snapshot);
    if names.is_empty() {
        domain::tell_none(context, "services")?;
    }
    // Servers that do not agree show the types of the first.
    let services = names.into_iter().filter_map(|name| {
        let servers = servers_of(&snapshot, name);
        let clients = servers.iter().map(|server| server.clients).max().unwrap_or_default();
        let types = servers.iter().find_map(|server| type_names(server).ok())?;
        Some((name, types, servers.len(), clients))
    });
    let services: Vec<_> = services.collect();
    if context.json() {
        let services = services.into_iter().map(|(name, (request, reply), servers, clients)| {
            let types = json!({"request": request, "reply": reply});
            json!({"service": name, "types": types, "servers": servers, "clients": clients})
        });
        let services: Vec<_> = services.collect();
        return context.document(&json!({"domain": domain.id(), "services": services}));
    }
    if args.verbose {
        let titles = ["SERVICE", "REQUEST", "REPLY", "SERVERS ", "CLIENTS "];
        let row =
            |(name, (request, reply), servers, clients): (&str, (&str, &str), usize, usize)| {
                [name, request, reply, &servers.to_string(), &clients.to_string()]
                    .map(str::to_owned)
                    .to_vec()
            };
        let rows: Vec<_> = services.into_iter().map(row).collect();
        return table::print(context, &titles, &rows);
    }
    for (name, (request, reply), ..) in services {
        match args.show_types {
            true => context.line(format_args!("{name} [{request} -> {reply}]"))?,
            false => context.line(format_args!("{name}"))?,
        }
    }
    Ok(())
}

pub fn info(context: &mut Context, service: &str) -> Outcome {
    let snapshot = look_at(context, service)?;
    let own = own_host(&snapshot);
    let servers = servers_of(&snapshot, service);
    if context.json() {
        let servers = servers.iter().map(|server| {
            let (host, node) = host_of(server.node());
            json!({
                "node": node,
                "host": host.unwrap_or(&own),
                "request": server.request_type(),
                "reply": server.reply_type(),
                "clients": server.clients,
            })
        });
        let servers: Vec<_> = servers.collect();
        return context.document(&json!({"service": service, "servers": servers}));
    }
    context.line(format_args!("Service: {service}"))?;
    for server in &servers {
        let (request, reply) = type_names(server)?;
        let (host, node) = host_of(server.node());
        context.heading(&format!("Server: {node}"))?;
        context.line(format_args!("  host: {}", host.unwrap_or(&own)))?;
        context.line(format_args!("  request: {request}"))?;
        context.line(format_args!("  reply: {reply}"))?;
        context.line(format_args!("  clients: {}", server.clients))?;
    }
    Ok(())
}

pub fn type_of(context: &mut Context, service: &str) -> Outcome {
    let snapshot = look_at(context, service)?;
    let servers = servers_of(&snapshot, service);
    let mut types = servers.iter().map(type_names).collect::<Outcome<Vec<_>>>()?;
    types.dedup();
    if context.json() {
        let types =
            types.iter().map(|(request, reply)| json!({"request": request, "reply": reply}));
        let types: Vec<_> = types.collect();
        return context.document(&json!({"service": service, "types": types}));
    }
    for (request, reply) in types {
        context.line(format_args!("{request}"))?;
        context.line(format_args!("{reply}"))?;
    }
    Ok(())
}
