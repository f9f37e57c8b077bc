//! The program `rnet-link`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::LinkOptions;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// What `rnet-link config` says.
#[derive(Debug, Deserialize)]
pub struct Settings {
    pub version: String,
    pub mode: String,
    pub mode_from: String,
    /// Why a link with these settings does not start.
    #[serde(default)]
    pub refused: Option<String>,
    pub file: Option<PathBuf>,
    pub interfaces: Vec<String>,
    pub connect: Vec<String>,
}

impl Settings {
    /// Where the mode was looked for, in words.
    pub fn mode_source(&self) -> String {
        match &self.file {
            Some(file) => {
                format!("RNET_NETWORK is not set, and {} does not set a mode", file.display())
            }
            None => {
                let here = std::env::current_dir().unwrap_or_default();
                format!(
                    "RNET_NETWORK is not set, and {} does not contain robot.toml",
                    here.display()
                )
            }
        }
    }
}

/// What `rnet-link discover` says: which hosts ask by multicast who is there, and which answer to that.
#[derive(Debug, Deserialize)]
pub struct MulticastProbe {
    pub groups: Vec<String>,
    pub asked_by: Vec<String>,
    pub answered_by: Vec<String>,
}

/// Listens for two seconds; `None` if the program cannot, as one of an earlier release.
pub fn probe_multicast(program: PathBuf, domain: &str) -> Option<MulticastProbe> {
    let mut command = Command::new(program);
    command.args(["discover", "--domain", domain]).stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

/// A command of the program for the domain of the context.
///
/// # Errors
/// It is not installed.
pub fn command(context: &Context, word: &str, options: &LinkOptions) -> Outcome<Command> {
    let program = rnet::link_program(None).map_err(Failure::Failed)?;
    let mut command = Command::new(program);
    command.arg(word);
    let global = context.global();
    if let Some(domain) = &global.domain {
        command.args(["--domain", domain.as_str()]);
    }
    if let Some(dir) = &global.dir {
        command.arg("--dir").arg(dir);
    }
    if let Some(config) = &options.config {
        command.arg("--config").arg(config);
    }
    let words = [
        ("--group", &global.group),
        ("--network", &options.network),
        ("--host", &options.host),
        ("--listen", &options.listen),
        ("--connect", &options.connect),
        ("--interfaces", &options.interfaces),
        ("--lost-after-ms", &options.lost_after_ms),
    ];
    for (option, value) in words {
        if let Some(value) = value {
            command.args([option, value]);
        }
    }
    Ok(command)
}

/// What the settings come to.
///
/// # Errors
/// The program is not installed, cannot be run, or says what is wrong with a setting.
pub fn settings(program: PathBuf, options: &LinkOptions) -> Result<Settings, String> {
    let mut command = Command::new(&program);
    command.arg("config").stdin(Stdio::null());
    if let Some(config) = &options.config {
        command.arg("--config").arg(config);
    }
    if let Some(network) = &options.network {
        command.args(["--network", network]);
    }
    let failed = |why: String| format!("cannot run {}: {why}", program.display());
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(said.strip_prefix("rnet-link: ").unwrap_or(said).to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| failed(format!("invalid output: {e}")))
}
