//! The state that a command works on: of this host, or of another one, whose keys are written `@host/key`.

use std::time::Duration;

use rnet::state::{Change, Entry, Replica, State, Watch, split_host};

use super::hint;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::StateSource;
use crate::shared_args::NodeArg;

/// A key or prefix, and the command's access to the state.
pub struct StateTarget<'a> {
    /// The other host, if any.
    pub host: Option<&'a str>,
    pub name: &'a str,
    pub source: StateSource,
}

impl<'a> StateTarget<'a> {
    /// Joins; creates the domain of this host if it does not exist.
    pub fn join(context: &Context, name: &'a str, own_node: &NodeArg) -> Outcome<StateTarget<'a>> {
        let at = StateTarget::observe(context, name, own_node)?;
        Ok(StateTarget { source: at.source.join(context, "state", own_node)?, ..at })
    }

    /// Joins only if state exists, and creates none.
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

    /// The state of this host, if it exists.
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

    /// The keys with this prefix; on this host with the revision.
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

    /// Deletes the key; `false` if it did not exist.
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

    /// Watches the keys with this prefix.
    pub fn watch(&self) -> Outcome<Option<ChangeFeed>> {
        Ok(match &self.source {
            StateSource::None => None,
            StateSource::Local(session) => {
                Some(ChangeFeed::Local(Box::new(session.state.watch(self.name)?)))
            }
            StateSource::Remote(state, _) => Some(ChangeFeed::Remote(state.mirror(self.name)?)),
        })
    }

    /// The error for a missing key.
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

/// The source of changes.
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

    pub fn recv_timeout(&mut self, limit: Duration) -> rnet::Result<Change> {
        match self {
            ChangeFeed::Local(watch) => watch.recv_timeout(limit),
            ChangeFeed::Remote(replica) => replica.recv_timeout(limit),
        }
    }
}
