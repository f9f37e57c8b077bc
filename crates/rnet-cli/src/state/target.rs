//! The state that a command is about: that of this host, or of another one, whose keys are written `@host/key`.

use std::time::Duration;

use rnet::state::{Change, Entry, Replica, State, Watch, split_host};

use super::hint;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::StateSource;
use crate::shared_args::NodeArg;

/// A key or prefix, and the part that the command takes in the state.
pub struct StateTarget<'a> {
    /// The other host, if it is one.
    pub host: Option<&'a str>,
    pub name: &'a str,
    pub source: StateSource,
}

impl<'a> StateTarget<'a> {
    /// Takes part; makes the domain of this host if it is not there yet.
    pub fn join(context: &Context, name: &'a str, own_node: &NodeArg) -> Outcome<StateTarget<'a>> {
        let at = StateTarget::observe(context, name, own_node)?;
        Ok(StateTarget { source: at.source.join(context, "state", own_node)?, ..at })
    }

    /// Takes part where there is state, and makes none.
    pub fn observe(
        context: &Context,
        name: &'a str,
        own_node: &NodeArg,
    ) -> Outcome<StateTarget<'a>> {
        let (host, name) = match split_host(name) {
            Some((host, name)) => (Some(host), name),
            None => (None, name),
        };
        Ok(StateTarget {
            host,
            name,
            source: StateSource::observe(context, host, "state", own_node)?,
        })
    }

    /// The state of this host, if there is one.
    pub fn local_state(&self) -> Option<&State> {
        if let StateSource::Local(session) = &self.source { Some(&session.state) } else { None }
    }

    pub fn entry(&self) -> Outcome<Option<Entry>> {
        Ok(match &self.source {
            StateSource::None => None,
            StateSource::Local(session) => session.state.entry(self.name)?,
            StateSource::Remote(state, _) => state.entry(self.name)?.value,
        })
    }

    /// The keys that begin so; of this host as of the revision.
    pub fn list(&self) -> Outcome<(u64, Vec<Entry>)> {
        Ok(match &self.source {
            StateSource::None => (0, Vec::new()),
            StateSource::Local(session) => {
                let picture = session.state.snapshot(self.name)?;
                (picture.revision, picture.entries.into_values().collect())
            }
            StateSource::Remote(state, _) => (0, state.list(self.name)?),
        })
    }

    /// Deletes the key; `false` if there was none.
    pub fn delete(&self, if_revision: Option<u64>) -> Outcome<bool> {
        Ok(match (&self.source, if_revision) {
            (StateSource::None, _) => false,
            (StateSource::Local(session), None) => session.state.delete(self.name)?,
            (StateSource::Local(session), Some(at)) => {
                session.state.put(self.name).if_revision(at).delete()?
            }
            (StateSource::Remote(state, _), None) => state.delete(self.name)?,
            (StateSource::Remote(state, _), Some(at)) => {
                state.put(self.name).if_revision(at).delete()?
            }
        })
    }

    /// Follows the keys that begin so.
    pub fn watch(&self) -> Outcome<Option<ChangeFeed>> {
        Ok(match &self.source {
            StateSource::None => None,
            StateSource::Local(session) => {
                Some(ChangeFeed::Local(Box::new(session.state.watch(self.name)?)))
            }
            StateSource::Remote(state, _) => Some(ChangeFeed::Remote(state.mirror(self.name)?)),
        })
    }

    /// Why there is no such key.
    pub fn no_key(&self, context: &Context) -> Outcome<Failure> {
        let key = self.name;
        Ok(match self.host {
            Some(host) => Failure::Failed(format!(
                "key {key} not found on host {host}; see rnet state list @{host}/"
            )),
            None => hint::no_key(self.local_state(), context.domain()?.id(), key),
        })
    }
}

/// What tells the changes.
pub enum ChangeFeed {
    Local(Box<Watch>),
    Remote(Replica),
}

impl ChangeFeed {
    pub fn try_recv(&mut self) -> rnet::Result<Option<Change>> {
        match self {
            ChangeFeed::Local(watch) => watch.try_recv(),
            ChangeFeed::Remote(replica) => replica.try_recv(),
        }
    }

    pub fn recv(&mut self, limit: Option<Duration>) -> rnet::Result<Change> {
        match self {
            ChangeFeed::Local(watch) => watch.recv(limit),
            ChangeFeed::Remote(replica) => replica.recv(limit),
        }
    }
}
