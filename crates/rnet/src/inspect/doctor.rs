//! Why does A not hear B?
//!
//! Looks at a domain from outside and says in words what is wrong and what to do about it:
//! - this file: the question, the answer, and the order of the checks;
//! - `place`: the directory, the machine's limits, other domains, nodes that died;
//! - `publishers`: whether those of a topic agree;
//! - `deployed`: what removes the directory, and what keeps containers apart;
//! - `talk`: who publishes what to whom, and why it does not arrive;
//! - `near`: names that were probably meant to be the same.
//!
//! Looking changes nothing in the domain, except that nodes whose process has died are swept up,
//! as every node does that sees them.

mod deployed;
mod near;
mod place;
mod publishers;
mod talk;

use std::path::PathBuf;

use rnet_core::{NodeName, Result, TopicName};
use serde::Serialize;

use super::{Domain, Snapshot};
pub use near::nearest as nearest_name;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Looked at, and well.
    Ok,
    /// Worth knowing; nothing to do.
    Note,
    /// Something keeps messages from arriving, or soon will.
    Problem,
}

/// One thing that the doctor found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Which check found it, a stable word for programs: `directory`, `type`, `qos`, …
    pub check: &'static str,
    /// What was found.
    pub what: String,
    /// What to do; every problem has it.
    pub advice: Option<String>,
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The node that should hear, and the node that should be heard.
    pub nodes: Option<(String, String)>,
    /// Look at this topic only.
    pub topic: Option<String>,
}

/// What the doctor found, in the order in which it looked.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// The domain's id.
    pub domain: String,
    /// Its directory.
    pub path: PathBuf,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// The problems among the findings.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.level == Level::Problem)
    }

    /// Whether there is no problem.
    pub fn is_well(&self) -> bool {
        self.problems().next().is_none()
    }
}

/// Collects findings.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, check, what: what.into(), advice: None });
    }
    fn note(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Note, check, what: what.into(), advice: None });
    }
    fn problem(&mut self, check: &'static str, what: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.0.push(Finding { level: Level::Problem, check, what: what.into(), advice });
    }
}

/// Examines the domain that the arguments, or else the environment, name.
///
/// # Errors
/// `BadName` and `BadValue` for the question itself. Everything else that goes wrong is a finding.
pub fn diagnose(
    domain: Option<&str>,
    dir: Option<PathBuf>,
    group: Option<String>,
    question: &Question,
) -> Result<Diagnosis> {
    let config = crate::node::domain_config(domain, dir, group)?;
    let path = rnet_shm::domain::DomainDir::path_of(&config)?;
    let absolute = |name: &String| NodeName::new(name).map(String::from);
    let nodes = match &question.nodes {
        Some((a, b)) => Some((absolute(a)?, absolute(b)?)),
        None => None,
    };
    let topic = question.topic.as_deref().map(TopicName::new).transpose()?.map(String::from);
    let mut findings = Findings::default();
    place::machine(&mut findings);
    let usable = place::directory(&mut findings, &config, &path);
    deployed::removed(&mut findings, &config, &path);
    let mut snapshot = Snapshot::default();
    if usable {
        // Before the first look, which sweeps them up.
        let dead = place::left_over(&mut findings, &config);
        match Domain::of_config(config.clone()).and_then(|mut domain| look(&mut domain)) {
            Ok(seen) => snapshot = seen,
            Err(error) => {
                let advice = "remove what stands there if no node runs, or use another RNET_DIR";
                findings.problem("directory", error.to_string(), advice);
            }
        }
        place::unswept(&mut findings, &config);
        place::room(&mut findings, &path, snapshot.nodes.len());
        deployed::place(&mut findings, &path, snapshot.nodes.len());
        place::processes(&mut findings, &snapshot);
        let others = place::neighbours(&mut findings, &config, &path, snapshot.nodes.len());
        if let Some((a, b)) = &nodes {
            let known = talk::Known { snapshot: &snapshot, dead: &dead, others: &others };
            talk::two_nodes(&mut findings, &known, a, b, topic.as_deref());
        } else {
            talk::everything(&mut findings, &snapshot, topic.as_deref());
        }
        for problem in &snapshot.problems {
            findings.problem("unreadable", problem.clone(), "restart that node");
        }
        for unread in &snapshot.unread {
            findings.note("type", unread.clone());
        }
    }
    Ok(Diagnosis { domain: config.id.to_string(), path, findings: findings.0 })
}

/// A snapshot in which pairs have had the time to find each other.
///
/// Between the announcement of an endpoint and its match lie a few milliseconds; a pair that fits
/// is only suspicious if it is still apart after many times that.
fn look(domain: &mut Domain) -> Result<Snapshot> {
    const LOOKS: u32 = 10;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
    let mut snapshot = domain.snapshot()?;
    for _ in 0..LOOKS {
        if talk::apart(&snapshot).is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        snapshot = domain.snapshot()?;
    }
    Ok(snapshot)
}
