//! The program `rnet-link`: its settings and its multicast probe.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// The output of `rnet-link config`.
#[derive(Debug, Deserialize)]
pub struct Settings {
    /// Version of the program.
    pub version: String,
    /// `off`, `lan` or `peers`.
    pub mode: String,
    /// What set the mode.
    pub mode_from: String,
    /// Why a link with these settings does not start.
    #[serde(default)]
    pub refused: Option<String>,
    /// The settings file.
    pub file: Option<PathBuf>,
    /// Network interfaces.
    pub interfaces: Vec<String>,
    /// Endpoints of other hosts.
    pub connect: Vec<String>,
}

impl Settings {
    /// The source of the mode as text.
    #[must_use]
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

/// The output of `rnet-link discover`: which hosts send multicast queries and which answer them.
#[derive(Debug, Deserialize)]
pub struct MulticastProbe {
    /// Multicast groups.
    pub groups: Vec<String>,
    /// Hosts whose queries were received.
    pub asked_by: Vec<String>,
    /// Hosts that answered.
    pub answered_by: Vec<String>,
}

/// Listens for two seconds; `None` if the program does not support it, as in earlier releases.
#[must_use]
pub fn probe_multicast(program: PathBuf, domain: &str) -> Option<MulticastProbe> {
    let mut command = Command::new(program);
    command.args(["discover", "--domain", domain]).stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The effective settings.
///
/// # Errors
/// The program is not installed, cannot be run, or rejects a setting.
pub fn settings(
    program: PathBuf,
    config: Option<&Path>,
    network: Option<&str>,
) -> Result<Settings, String> {
    let mut command = Command::new(&program);
    command.arg("config").stdin(Stdio::null());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    if let Some(network) = network {
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
