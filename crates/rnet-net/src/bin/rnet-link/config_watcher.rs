//! The file with the settings, looked at while the link runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet_net::config::{Config, Overrides};

use crate::error_text;

/// Between two looks. What is looked at has stood still from one to the next, so no half-written file is read.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// After this time a mistake is told again: the link forgets what was wrong.
const REPEAT_INTERVAL: Duration = Duration::from_secs(300);

/// The file of which the settings in force were read, or would have been if it had been there.
pub struct ConfigWatcher {
    overrides: Overrides,
    path: PathBuf,
    /// Whether it was there. One that was not may be made.
    existed: bool,
    /// Whether somebody has named it.
    is_named: bool,
    /// The settings in force, as text.
    config: String,
    checked_at: Instant,
    /// Its text at the last look, and when it was understood, or was not.
    last: Option<Result<String, String>>,
    evaluated: Option<Result<String, String>>,
    /// When a mistake in it was told, if there is one.
    reported_at: Option<Instant>,
}

/// What has become of the file.
pub enum ConfigChange {
    /// It says something else.
    Settings,
    /// It cannot be read or understood, as this says.
    Invalid(String),
}

impl ConfigWatcher {
    pub fn new(overrides: Overrides, config: &Config) -> ConfigWatcher {
        let (path, named_by) = Config::path(&overrides);
        let (existed, config) = (config.file.is_some(), settings_text(config.clone()));
        let checked_at = Instant::now();
        let (last, evaluated, reported_at) = (None, None, None);
        let is_named = named_by.is_some();
        ConfigWatcher {
            overrides,
            path,
            existed,
            is_named,
            config,
            checked_at,
            last,
            evaluated,
            reported_at,
        }
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What has become of it since the last call. The first one also tells what was so before.
    pub fn poll_change(&mut self) -> Option<ConfigChange> {
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return None;
        }
        self.checked_at = Instant::now();
        let now = Some(rnet_config::text(&self.path).map_err(error_text));
        let is_stable = self.last == now;
        self.last = now;
        let again = self.reported_at.is_some_and(|told| told.elapsed() >= REPEAT_INTERVAL);
        if !is_stable || (self.evaluated == self.last && !again) {
            return None;
        }
        self.evaluated = self.last.clone();
        let change = self.evaluate();
        let is_mistake = matches!(change, Some(ConfigChange::Invalid(_)));
        self.reported_at = is_mistake.then(Instant::now);
        change
    }

    fn evaluate(&self) -> Option<ConfigChange> {
        // One that is gone is a mistake: the settings of none would end the link.
        if let Some(Err(error)) = &self.evaluated
            && self.existed
        {
            return Some(ConfigChange::Invalid(format!("it cannot be read: {error}")));
        }
        if !self.existed
            && !self.is_named
            && self.evaluated.as_ref().is_some_and(Result::is_ok)
            && let Err(why) = check_owner(&self.path)
        {
            return Some(ConfigChange::Invalid(why));
        }
        match Config::load(&self.overrides) {
            Ok(config) => match config.check_insecure() {
                Ok(()) => (settings_text(config) != self.config).then_some(ConfigChange::Settings),
                Err(why) => Some(ConfigChange::Invalid(why)),
            },
            Err(error) => Some(ConfigChange::Invalid(error.to_string())),
        }
    }
}

/// A file that appears where the link happens to run is read only if nobody else can have made it, as in `/tmp`.
fn check_owner(path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    for place in [path, folder.unwrap_or(Path::new("."))] {
        let found = std::fs::metadata(place).map_err(error_text)?;
        let ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
        if !ours || found.mode() & 0o002 != 0 {
            let (place, mode) = (place.display(), found.mode() & 0o7777);
            return Err(format!(
                "it was created after the link started, and {place} (user {}, mode {mode:o}) may belong to another user, \
                 so it is ignored; specify it with --config or RNET_CONFIG",
                found.uid()
            ));
        }
    }
    Ok(())
}

/// The settings as text, whether or not there is a file.
fn settings_text(mut config: Config) -> String {
    config.file = None;
    format!("{config:?}")
}
