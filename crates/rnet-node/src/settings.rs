//! With which settings a node joins which domain.

use std::path::PathBuf;
use std::sync::Arc;

use rnet_core::{DomainId, Error, NameResolver, Result};
use rnet_shm::domain::directory::{DomainConfig, DomainDir};
use rnet_shm::domain::node::OwnNode;
use rnet_shm::domain::registry::TOOL_LANGUAGE;

use crate::core::NodeCore;
use crate::node_time::NodeTime;

/// Settings of a node; each that is given overrides the environment.
#[derive(Clone, Debug, Default)]
pub struct NodeSettings {
    /// The node's name.
    pub name: String,
    /// The domain, instead of `RNET_DOMAIN` (default `0`).
    pub domain: Option<String>,
    /// The directory in which domains stand, instead of `RNET_DIR` (default `/dev/shm`).
    pub dir: Option<PathBuf>,
    /// The Unix group that shares the domain, instead of `RNET_GROUP` (default: nobody).
    pub group: Option<String>,
    /// Whether waits may change what the scheduler does with the threads that wait, instead of what
    /// `RNET_TUNE_THREADS` says (`1` or `0`, default `1`).
    pub tune_threads: Option<bool>,
    /// Whether the node's time is what `/clock` says, instead of what `RNET_SIM_TIME` says (`1` or `0`, default `0`).
    pub sim_time: Option<bool>,
    /// Below what names without a leading `/` go, instead of `RNET_NAMESPACE` (default: nothing).
    pub namespace: Option<String>,
    /// Rules that rename, as pairs of a name and what it becomes, ahead of those of `RNET_REMAP`.
    pub remap: Vec<(String, String)>,
    /// The language of the node's program, for the tools.
    pub language: String,
}

impl NodeSettings {
    /// Those of the environment.
    pub fn new(name: &str) -> NodeSettings {
        let (name, language) = (name.to_owned(), "rust".to_owned());
        NodeSettings { name, language, ..NodeSettings::default() }
    }

    /// Joins the domain.
    ///
    /// # Errors
    /// `BadName`; `BadValue` for a setting; `NameTaken` if a living node has this name; `NoPermission`, `LayoutVersion`,
    /// `OutOfMemory` for the domain's directory; `LimitReached` where there are as many nodes as there may be.
    pub fn open(self) -> Result<Arc<NodeCore>> {
        let naming = self.naming()?;
        let name = naming.node(&self.name)?;
        let tunes = self.tune_threads.map_or_else(may_tune_threads, Ok)?;
        let simulated = self.sim_time.map_or_else(|| env_flag("RNET_SIM_TIME", false), Ok)?;
        // A tool has no time of its own.
        let time = if simulated && self.language != TOOL_LANGUAGE {
            NodeTime::simulated()
        } else {
            NodeTime::default()
        };
        let config = domain_config(self.domain.as_deref(), self.dir, self.group)?;
        let dir = DomainDir::open_or_create(&config)?;
        let own = OwnNode::create(&dir, &name, &self.language, crate::VERSION)?;
        own.bells().set_tunes_threads(tunes);
        NodeCore::start(own, self.language == TOOL_LANGUAGE, time, naming)
    }

    /// What becomes of names. Those that a tool is given are of the domain already.
    fn naming(&self) -> Result<NameResolver> {
        if self.language == TOOL_LANGUAGE {
            return Ok(NameResolver::default());
        }
        // An error names the place that has to be changed.
        let of = |variable: &'static str| {
            move |error| match error {
                Error::BadValue { why, .. } => Error::bad_value(variable, why),
                other => other,
            }
        };
        let (namespace, from) = match &self.namespace {
            Some(namespace) => (namespace.clone(), "namespace"),
            None => (env_text("RNET_NAMESPACE")?, "RNET_NAMESPACE"),
        };
        NameResolver::new(Some(&namespace), &[]).map_err(of(from))?;
        let by_environment =
            NameResolver::parse_rules(&env_text("RNET_REMAP")?).and_then(|rules| {
                NameResolver::new(Some(&namespace), &rules)?;
                Ok(rules)
            });
        let rules = [&self.remap[..], &by_environment.map_err(of("RNET_REMAP"))?].concat();
        NameResolver::new(Some(&namespace), &rules)
    }
}

/// What a variable says; nothing if it is not set.
fn env_text(name: &str) -> Result<String> {
    let set = std::env::var_os(name).unwrap_or_default();
    set.into_string()
        .map_err(|set| Error::bad_value(name, format!("{} is not UTF-8 text", set.display())))
}

/// Whether robot-net may ask anything of the scheduler, where the program does not say.
///
/// # Errors
/// `BadValue`: `RNET_TUNE_THREADS` is neither 0 nor 1.
pub fn may_tune_threads() -> Result<bool> {
    env_flag("RNET_TUNE_THREADS", true)
}

/// What a variable says that is `1` or `0`.
fn env_flag(name: &str, default: bool) -> Result<bool> {
    let set = std::env::var_os(name).unwrap_or_default();
    match set.as_encoded_bytes() {
        b"" => Ok(default),
        b"1" => Ok(true),
        b"0" => Ok(false),
        _ => Err(Error::bad_value(
            name,
            format!("{} is neither 0 nor 1: set it to 0 or 1, or unset it", set.display()),
        )),
    }
}

/// Settings as given, else from the environment, else the defaults.
pub fn domain_config(
    domain: Option<&str>,
    dir: Option<PathBuf>,
    group: Option<String>,
) -> Result<DomainConfig> {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let id = match domain.map(str::to_owned).or_else(|| set("RNET_DOMAIN")) {
        Some(id) => DomainId::new(&id)?,
        None => DomainId::default(),
    };
    Ok(DomainConfig {
        id,
        base: dir.or_else(|| set("RNET_DIR").map(PathBuf::from)),
        group: group.or_else(|| set("RNET_GROUP")),
    })
}
