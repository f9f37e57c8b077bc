//! `rnet service …`.

pub mod args;
pub mod call;
mod list;

use args::ServiceCommand;
use rnet::inspect::{ServerInfo, Snapshot};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::topic::{look, no_such};

pub fn run(context: &mut Context, command: ServiceCommand) -> Outcome {
    match command {
        ServiceCommand::List(args) => list::run(context, &args),
        ServiceCommand::Info { service } => list::info(context, service.as_str()),
        ServiceCommand::Type { service } => list::type_of(context, service.as_str()),
        ServiceCommand::Call(args) => call::run(context, &args),
    }
}

/// The names of the services.
pub fn names(snapshot: &Snapshot) -> Vec<&str> {
    let mut names: Vec<&str> = snapshot.servers().iter().map(|server| server.service).collect();
    names.dedup();
    names
}

/// The servers of a service.
pub fn servers_of<'a>(snapshot: &'a Snapshot, service: &str) -> Vec<ServerInfo<'a>> {
    snapshot.servers().into_iter().filter(|server| server.service == service).collect()
}

/// What there is, with a service that has a server.
fn look_at(context: &Context, service: &str) -> Outcome<Snapshot> {
    let (domain, snapshot) = look(context)?;
    match names(&snapshot).contains(&service) {
        true => Ok(snapshot),
        false => Err(no_such("service", domain.id(), service, names(&snapshot).into_iter())),
    }
}

/// The types of requests and replies in words.
fn type_names<'a>(server: &ServerInfo<'a>) -> Outcome<(&'a str, &'a str)> {
    let name = |of: rnet::inspect::CallType<'a>| of.desc.name().unwrap_or("raw");
    match server.reply_type() {
        Some(reply) => Ok((name(server.request_type()), name(reply))),
        None => Err(Failure::Failed(format!(
            "the server of {} in {} has just come or gone; ask again",
            server.service,
            server.node()
        ))),
    }
}
