//! Servers of services and actions.

use rnet::inspect::{CallType, ServerInfo, Snapshot};
use serde_json::{Map, Value, json};

/// What a server offers. An action is a service, too: that of its goals and results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// A request and its reply.
    Service,
    /// A goal, its feedback and its result.
    Action,
}

impl ServerKind {
    /// `service` or `action`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ServerKind::Service => "service",
            ServerKind::Action => "action",
        }
    }

    /// The messages of a call, in their order.
    #[must_use]
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            ServerKind::Service => &["request", "reply"],
            ServerKind::Action => &["goal", "feedback", "result"],
        }
    }

    /// The types of these messages; `None` of a server that has just come or goes.
    pub fn types<'a>(self, server: &ServerInfo<'a>) -> Option<Vec<CallType<'a>>> {
        let (request, reply) = (server.request_type(), server.reply_type()?);
        Some(match self {
            ServerKind::Service => vec![request, reply],
            ServerKind::Action => vec![request, server.feedback_type()?, reply],
        })
    }

    /// The names of these types.
    #[must_use]
    pub fn type_names<'a>(self, server: &ServerInfo<'a>) -> Option<Vec<&'a str>> {
        let types = self.types(server)?;
        Some(types.into_iter().map(|of| of.desc.name().unwrap_or("raw")).collect())
    }

    /// The servers of this name.
    #[must_use]
    pub fn servers<'a>(self, snapshot: &'a Snapshot, name: &str) -> Vec<ServerInfo<'a>> {
        let is_it = |server: &ServerInfo<'_>| {
            server.service == name && (self == ServerKind::Service || server.feedback.is_some())
        };
        snapshot.servers().into_iter().filter(is_it).collect()
    }

    /// The names of all servers.
    #[must_use]
    pub fn names(self, snapshot: &Snapshot) -> Vec<&str> {
        let servers = snapshot.servers().into_iter();
        let servers = servers.filter(|of| self == ServerKind::Service || of.feedback.is_some());
        let mut names: Vec<&str> = servers.map(|server| server.service).collect();
        names.dedup();
        names
    }

    /// These types as JSON, by message.
    #[must_use]
    pub fn named(self, types: &[&str]) -> Value {
        let named = self.parts().iter().zip(types);
        named.map(|(part, name)| ((*part).to_owned(), json!(name))).collect::<Map<_, _>>().into()
    }
}
