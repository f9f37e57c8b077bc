//! Settings of a node, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use rnet_core::Result;
use rnet_node::{NodeHandle, NodeSettings};

use super::Node;
use crate::link_start::LinkStarter;

/// Settings of a node; each overrides the environment.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    settings: NodeSettings,
    state_dir: Option<PathBuf>,
    programs: Option<PathBuf>,
}

impl NodeBuilder {
    pub(super) fn new(settings: NodeSettings) -> NodeBuilder {
        NodeBuilder { settings, state_dir: None, programs: None }
    }

    /// The domain, instead of `RNET_DOMAIN` (default `0`).
    pub fn domain(mut self, id: &str) -> Self {
        self.settings.domain = Some(id.to_owned());
        self
    }

    /// The directory of the domains, instead of `RNET_DIR` (default `/dev/shm`).
    pub fn dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.dir = Some(path.into());
        self
    }

    /// The Unix group that shares the domain, instead of `RNET_GROUP` (default: none).
    pub fn group(mut self, group: &str) -> Self {
        self.settings.group = Some(group.to_owned());
        self
    }

    /// The directory for durable state, instead of `RNET_STATE_DIR` (default: `$XDG_STATE_HOME/rnet`, or
    /// `~/.local/state/rnet`). Each domain has its own subdirectory.
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_dir = Some(path.into());
        self
    }

    /// Whether waits may change scheduler settings of the waiting threads, instead of `RNET_TUNE_THREADS`
    /// (`1` or `0`, default `1`).
    ///
    /// A thread that sleeps adaptively for an urgent topic or for state changes gets a short time slice until
    /// the subscriber or watch is dropped, and timers without slack while it sleeps until a message is due.
    /// Settings that the user has chosen for a thread (policy, nice value, slice, slack, processors) are not
    /// changed. With `false` no thread is changed. For the effect see docs/guide/real-time.md.
    pub fn tune_threads(mut self, yes: bool) -> Self {
        self.settings.tune_threads = Some(yes);
        self
    }

    /// Whether the node uses the simulated time on `/clock`, instead of `RNET_SIM_TIME` (`1` or `0`, default
    /// `0`). See [`Node::now`].
    pub fn sim_time(mut self, yes: bool) -> Self {
        self.settings.sim_time = Some(yes);
        self
    }

    /// The namespace of names without a leading `/`, instead of `RNET_NAMESPACE` (default: none): the node's
    /// own name, and its topics, services, actions and commands. State keys are not changed.
    ///
    /// ```no_run
    /// # fn main() -> rnet::Result<()> {
    /// let node = rnet::Node::builder("lidar").namespace("/left").open()?;
    /// let scans = node.publisher::<[u8]>("scan").open()?;
    /// assert_eq!((node.name(), scans.topic()), ("/left/lidar", "/left/scan"));
    /// # Ok(()) }
    /// ```
    pub fn namespace(mut self, name: &str) -> Self {
        self.settings.namespace = Some(name.to_owned());
        self
    }

    /// Renames a topic, service, action or command: the program's `from` is `to` in the domain. The first
    /// matching rule applies, once; rules of `RNET_REMAP` (`FROM=TO,FROM=TO`) come after the rules given
    /// here.
    ///
    /// Names in rules are as elsewhere: below the namespace without a leading `/`, below the node's name with
    /// `~/`. `/a/**` to `/b/**` moves all names below `/a`, and `node:lidar` to `eye` renames the node.
    /// `/log`, `/clock` and `/_rnet/…` cannot be renamed.
    pub fn remap(mut self, from: &str, to: &str) -> Self {
        self.settings.remap.push((from.to_owned(), to.to_owned()));
        self
    }

    /// The language of the node's program, for the tools; bindings set it.
    pub fn language(mut self, language: &str) -> Self {
        self.settings.language = language.to_owned();
        self
    }

    /// For the command line: the node belongs to a tool, and may use the slots reserved for tools.
    pub fn tool(mut self) -> Self {
        self.settings.language = rnet_shm::domain::registry::TOOL_LANGUAGE.to_owned();
        self
    }

    /// For bindings: the folder of their programs, including `rnet-link`.
    pub fn programs(mut self, dir: impl Into<PathBuf>) -> Self {
        self.programs = Some(dir.into());
        self
    }

    /// Joins the domain.
    ///
    /// If a network is configured (`RNET_NETWORK`, `RNET_LISTEN`, `RNET_CONNECT`, `RNET_CONFIG`, or a
    /// `robot.toml` in the working directory), this starts the link between hosts, if it does not run: the
    /// program `rnet-link`, in the background. A failure of that is reported on stderr and is not an error of
    /// the node.
    ///
    /// # Errors
    /// As [`Node::new`], and `BadValue` for an invalid level in `RNET_LOG`, an invalid namespace, or an
    /// invalid rule.
    pub fn open(self) -> Result<Node> {
        let NodeSettings { domain, dir, group, language, .. } = self.settings.clone();
        let handle = NodeHandle::open(self.settings)?;
        if language != rnet_shm::domain::registry::TOOL_LANGUAGE {
            LinkStarter { domain, dir, group, programs: self.programs }
                .keep_link_running(&handle.core);
        }
        let (state_dir, clients) = (self.state_dir.map(Into::into), Arc::default());
        Ok(Node { handle, state_dir, clients })
    }
}
