//! The protobuf types that peers name.

use std::path::Path;

use rnet_core::{Error, Result, TypeDesc};
use rnet_shm::shortage::is_passing;

use super::Matching;
use crate::fit::Told;

impl Matching {
    /// The type that an endpoint of the node in `folder` names, if our endpoint `own` needs to know
    /// it: only protobuf messages are compared with each other.
    ///
    /// # Errors
    /// What may be otherwise at the next look: the node is leaving, or something ran out.
    pub(super) fn told_by(&mut self, folder: &Path, desc: &TypeDesc, own: u64) -> Result<Told> {
        let publisher = self.publishers.get(&own).map(|own| &own.told);
        let ours = publisher.or(self.subscriptions.get(&own).map(|own| &own.told));
        let (Some(named), Some(Told::Type(Some(_)))) = (desc.as_protobuf(), ours) else {
            return Ok(Told::Type(None));
        };
        match self.schemas.read(folder, named) {
            Ok(schema) => Ok(Told::Type(Some(schema))),
            Err(error @ Error::Io { source_kind: std::io::ErrorKind::NotFound, .. }) => Err(error),
            Err(error) if is_passing(&error) => Err(error),
            Err(Error::Corrupt { what, .. }) => Ok(Told::Unreadable(what)),
            Err(error) => Ok(Told::Unreadable(error.to_string())),
        }
    }
}
