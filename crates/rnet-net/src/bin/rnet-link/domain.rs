//! The domain whose host is linked, and the roles in it.

use std::path::PathBuf;

use rnet::inspect::Location;
use rnet::role::Role;
use rnet::{Node, NodeBuilder};

use crate::args::Options;
use crate::error_text;

/// The role of the process that links.
const LINK: &str = "link";
/// The role of the one that waits to take it over. A third ends.
const STANDBY: &str = "link-standby";

pub struct Domain {
    pub location: Location,
    pub link: Role,
    pub standby: Role,
}

impl Domain {
    /// Makes the domain if it is not there yet.
    pub fn open(options: &Options) -> Result<Domain, String> {
        let domain = options.domain.as_ref().map(|id| id.as_str());
        let (dir, group): (Option<PathBuf>, _) = (options.dir.clone(), options.group.clone());
        let location = Location::new(domain, dir, group).map_err(error_text)?;
        let role = |name| location.role(name).map_err(error_text);
        Ok(Domain { link: role(LINK)?, standby: role(STANDBY)?, location })
    }

    /// A node of this process, for the link or the state: one of a tool, for it does not count among those for
    /// which it is there.
    pub fn node(options: &Options, what: &str) -> NodeBuilder {
        let mut node = Node::builder(&format!("/_rnet/{what}_{}", std::process::id())).tool();
        if let Some(domain) = &options.domain {
            node = node.domain(domain.as_str());
        }
        if let Some(dir) = &options.dir {
            node = node.dir(dir);
        }
        if let Some(group) = &options.group {
            node = node.group(group);
        }
        node
    }
}
