//! `rnet service list`, `info` and `type`, and `rnet action list` and `info`.

use rnet::inspect::{Snapshot, is_internal};
pub use rnet_monitor::servers::ServerKind as Kind;
use serde_json::json;

use super::ListArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::snapshot::{not_found, take_snapshot};
use crate::{domain, table};
use rnet_monitor::link::{host_of, own_host};

/// A snapshot with a server of this name.
pub fn snapshot_with_server(kind: Kind, context: &Context, name: &str) -> Outcome<Snapshot> {
    let (domain, snapshot) = take_snapshot(context)?;
    if kind.servers(&snapshot, name).is_empty() {
        let names = kind.names(&snapshot).into_iter();
        return Err(not_found(kind.word(), domain.id(), name, names));
    }
    Ok(snapshot)
}

/// Lists names, or all details of each.
pub fn list(context: &mut Context, kind: Kind, args: &ListArgs) -> Outcome {
    let ListArgs { show_types, verbose, all } = *args;
    let (domain, snapshot) = take_snapshot(context)?;
    let (word, plural) = (kind.word(), format!("{}s", kind.word()));
    let mut names = kind.names(&snapshot);
    names.retain(|name| all || !is_internal(name));
    if names.is_empty() {
        domain::report_none_found(context, &plural)?;
    }
    // If the servers disagree, the types of the first are shown.
    let found = names.into_iter().filter_map(|name| {
        let servers = kind.servers(&snapshot, name);
        let clients = servers.iter().map(|server| server.clients).max().unwrap_or_default();
        let types = servers.iter().find_map(|server| kind.type_names(server))?;
        Some((name, types, servers.len(), clients))
    });
    let found: Vec<_> = found.collect();
    if context.json() {
        let found = found.into_iter().map(|(name, types, servers, clients)| {
            json!({word: name, "types": kind.named(&types), "servers": servers, "clients": clients})
        });
        let found: Vec<_> = found.collect();
        return context.document(&json!({"domain": domain.id(), plural: found}));
    }
    if verbose {
        let titles = [&[word], kind.parts(), &["servers ", "clients "]].concat();
        let titles: Vec<String> = titles.iter().map(|title| title.to_uppercase()).collect();
        let row = |(name, types, servers, clients): (&str, Vec<&str>, usize, usize)| {
            let counts = [servers, clients].map(|count| count.to_string());
            let words = std::iter::once(name).chain(types).map(str::to_owned);
            words.chain(counts).collect()
        };
        let rows: Vec<_> = found.into_iter().map(row).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        return table::print(context, &titles, &rows);
    }
    for (name, types, ..) in found {
        match show_types {
            true => context.line(format_args!("{name} [{}]", types.join(" -> ")))?,
            false => context.line(format_args!("{name}"))?,
        }
    }
    Ok(())
}

/// Shows the servers of a name, with their types.
pub fn info(context: &mut Context, kind: Kind, name: &str) -> Outcome {
    let snapshot = snapshot_with_server(kind, context, name)?;
    let own = own_host(&snapshot);
    let servers = kind.servers(&snapshot, name);
    if context.json() {
        let servers = servers.iter().filter_map(|server| {
            let (host, node) = host_of(server.node());
            let mut document = json!({
                "node": node, "host": host.unwrap_or(&own), "clients": server.clients,
            });
            for (part, of) in kind.parts().iter().zip(kind.types(server)?) {
                document[*part] = json!(of);
            }
            Some(document)
        });
        let servers: Vec<_> = servers.collect();
        return context.document(&json!({kind.word(): name, "servers": servers}));
    }
    let title = if kind == Kind::Service { "Service" } else { "Action" };
    context.line(format_args!("{title}: {name}"))?;
    for server in &servers {
        let Some(types) = kind.type_names(server) else { continue };
        let (host, node) = host_of(server.node());
        context.heading(&format!("Server: {node}"))?;
        context.line(format_args!("  host: {}", host.unwrap_or(&own)))?;
        for (part, name) in kind.parts().iter().zip(types) {
            context.line(format_args!("  {part}: {name}"))?;
        }
        context.line(format_args!("  clients: {}", server.clients))?;
    }
    Ok(())
}

/// Prints the types of a service, once for all servers that agree.
pub fn type_of(context: &mut Context, service: &str) -> Outcome {
    let snapshot = snapshot_with_server(Kind::Service, context, service)?;
    let servers = Kind::Service.servers(&snapshot, service);
    let mut types: Vec<_> = servers.iter().filter_map(|of| Kind::Service.type_names(of)).collect();
    types.dedup();
    if types.is_empty() {
        let what = format!("the server of {service} has just joined or left; try again");
        return Err(Failure::Failed(what));
    }
    if context.json() {
        let types: Vec<_> = types.iter().map(|types| Kind::Service.named(types)).collect();
        return context.document(&json!({"service": service, "types": types}));
    }
    types.iter().flatten().try_for_each(|name| context.line(format_args!("{name}")))
}
