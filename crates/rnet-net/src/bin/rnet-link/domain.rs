//! The linked domain and its roles.

use std::path::PathBuf;

use rnet::bridge::Role;
use rnet::inspect::Location;
use rnet::{Node, NodeBuilder};

use crate::args::Options;
use crate::error_text;

/// The role of the link process.
const LINK: &str = "link";
/// The role of the standby, which waits to take over. A third process exits.
const STANDBY: &str = "link-standby";

pub struct Domain {
    pub location: Location,
    pub link: Role,
    pub standby: Role,
}

impl Domain {
    /// Creates the domain if it does not exist.
    pub fn open(options: &Options) -> Result<Domain, String> {
        let domain = options.domain.as_ref().map(|id| id.as_str());
        let (dir, group): (Option<PathBuf>, _) = (options.dir.clone(), options.group.clone());
        let location = Location::new(domain, dir, group).map_err(error_text)?;
        let role = |name| location.role(name).map_err(error_text);
        Ok(Domain { link: role(LINK)?, standby: role(STANDBY)?, location })
    }

    /// A node of this process, for the link or the state. It is a tool, because it must not count among the
    /// nodes that keep the link running.
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
