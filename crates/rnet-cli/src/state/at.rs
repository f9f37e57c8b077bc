//! The state that a command is about: that of this host, or of another one, whose keys are written `@host/key`.

use std::time::Duration;

use rnet::state::{Change, Entry, Replica, State, Watch, split_host};

use super::hint;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::session::Source;
use crate::shared_args::NodeArg;

/// A key or prefix, and the part that the command takes in the state.
pub struct At<'a> {
    /// The other host, if it is one.
    pub host: Option<&'a str>,
    pub name: &'a str,
    pub source: Source,
}

impl<'a> At<'a> {
    /// Takes part; makes the domain of this host if it is not there yet.
    pub fn join(context: &Context, name: &'a str, me: &NodeArg) -> Outcome<At<'a>> {
        let at = At::look(context, name, me)?;
        Ok(At { source: at.source.join(context, "state", me)?, ..at })
    }

    /// Takes part where there is state, and makes none.
    pub fn look(context: &Context, name: &'a str, me: &NodeArg) -> Outcome<At<'a>> {
        let (host, name) = match split_host(name) {
            Some((host, name)) => (Some(host), name),
            None => (None, name),
        };
        Ok(At { host, name, source: Source::look(context, host, "state", me)? })
    }

    /// The state of this host, if there is one.
    pub fn here(&self) -> Option<&State> {
        if let Source::Here(session) = &self.source { Some(&session.state) } else { None }
    }

    pub fn entry(&self) -> Outcome<Option<Entry>> {
        Ok(match &self.source {
            Source::None => None,
            Source::Here(session) => session.state.entry(self.name)?,
            Source::There(state, _) => state.entry(self.name)?.value,
        })
    }

    /// The keys that begin so; of this host as of the revision.
    pub fn list(&self) -> Outcome<(u64, Vec<Entry>)> {
        Ok(match &self.source {
            Source::None => (0, Vec::new()),
            Source::Here(session) => {
                let picture = session.state.snapshot(self.name)?;
                (picture.revision, picture.entries.into_values().collect())
            }
            Source::There(state, _) => (0, state.list(self.name)?),
        })
    }

    /// Deletes the key; `false` if there was none.
    pub fn delete(&self, if_revision: Option<u64>) -> Outcome<bool> {
        Ok(match (&self.source, if_revision) {
            (Source::None, _) => false,
            (Source::Here(session), None) => session.state.delete(self.name)?,
            (Source::Here(session), Some(at)) => {
                session.state.put(self.name).if_revision(at).delete()?
            }
            (Source::There(state, _), None) => state.delete(self.name)?,
            (Source::There(state, _), Some(at)) => state.put(self.name).if_revision(at).delete()?,
        })
    }

    /// Follows the keys that begin so.
    pub fn watch(&self) -> Outcome<Option<Feed>> {
        Ok(match &self.source {
            Source::None => None,
            Source::Here(session) => Some(Feed::Here(Box::new(session.state.watch(self.name)?))),
            Source::There(state, _) => Some(Feed::There(state.mirror(self.name)?)),
        })
    }

    /// Why there is no such key.
    pub fn no_key(&self, context: &Context) -> Outcome<Failure> {
        let key = self.name;
        Ok(match self.host {
            Some(host) => Failure::Failed(format!(
                "key {key} not found on host {host}; see rnet state list @{host}/"
            )),
            None => hint::no_key(self.here(), context.domain()?.id(), key),
        })
    }
}

/// What tells the changes.
pub enum Feed {
    Here(Box<Watch>),
    There(Replica),
}

impl Feed {
    pub fn try_recv(&mut self) -> rnet::Result<Option<Change>> {
        match self {
            Feed::Here(watch) => watch.try_recv(),
            Feed::There(replica) => replica.try_recv(),
        }
    }

    pub fn recv(&mut self, limit: Option<Duration>) -> rnet::Result<Change> {
        match self {
            Feed::Here(watch) => watch.recv(limit),
            Feed::There(replica) => replica.recv(limit),
        }
    }
}
