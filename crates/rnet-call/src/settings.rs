//! The fixed settings of an open server.

use rnet_core::{Error, Result};

use rnet_node::MessageType;

const MAX_BACKLOG: usize = 1 << 16;
const MAX_AT_ONCE: usize = 256;

pub struct ServerSettings {
    pub name: String,
    /// Whether the name is already the domain's: no rule of the node renames it.
    pub is_final: bool,
    pub backlog: usize,
    pub at_once: usize,
    /// The type of feedback, for an action.
    pub feedback: Option<MessageType>,
    /// Whether a newer call replaces the present ones.
    pub replaces: bool,
    /// Whether a closing server refuses calls that no handler has seen, so that their callers send them to
    /// another server.
    pub requeues: bool,
}

impl ServerSettings {
    pub fn new(name: &str) -> ServerSettings {
        ServerSettings {
            name: name.to_owned(),
            is_final: false,
            backlog: 64,
            at_once: 1,
            feedback: None,
            replaces: false,
            requeues: false,
        }
    }

    /// # Errors
    /// `BadValue` for a backlog or a number of handlers that is not allowed.
    pub fn check(&self) -> Result<()> {
        within("backlog", self.backlog, 0, MAX_BACKLOG)?;
        within("handlers at once", self.at_once, 1, MAX_AT_ONCE)
    }
}

fn within(what: &str, given: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let why = format!("it is {given}; it must be {least} to {most}");
    Err(Error::bad_value(format!("{what} of a service"), why))
}
