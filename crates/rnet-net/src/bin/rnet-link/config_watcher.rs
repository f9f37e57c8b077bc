//! Watches the settings file while the link runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet_net::config::{Config, Overrides};

use crate::error_text;

/// The interval between two checks. A file counts once it is unchanged from one check to the next, so that
/// no half-written file is read.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The interval after which a mistake is reported again: the link removes old problems.
const REPEAT_INTERVAL: Duration = Duration::from_secs(300);

/// The file from which the current settings were read, or would have been read if it had existed.
pub struct ConfigWatcher {
    overrides: Overrides,
    path: PathBuf,
    /// Whether it existed. A missing file may be created.
    existed: bool,
    /// Whether its path was configured.
    is_named: bool,
    /// The current settings, as text.
    config: String,
    checked_at: Instant,
    /// Its text at the last check, and whether it was valid then.
    last: Option<Result<String, String>>,
    evaluated: Option<Result<String, String>>,
    /// When a mistake in it was reported, if it has one.
    reported_at: Option<Instant>,
}

/// A change of the file.
pub enum ConfigChange {
    /// It has other settings.
    Settings,
    /// It cannot be read or parsed, for this reason.
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

    /// Its display name.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The change since the last call. The first call also reports an earlier change.
    pub fn poll_change(&mut self) -> Option<ConfigChange> {
        if self.checked_at.elapsed() < CHECK_INTERVAL {
            return None;
        }
        self.checked_at = Instant::now();
        let now = Some(rnet_config::text(&self.path).map_err(error_text));
        let is_stable = self.last == now;
        self.last = now;
        let again = self.reported_at.is_some_and(|reported| reported.elapsed() >= REPEAT_INTERVAL);
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
        // A removed file is a mistake: the default settings would stop the link.
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

/// Checks the owner of a file that appears in the link's working directory: it is read only if no other
/// user can have created it, as would be possible in `/tmp`.
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

/// The settings as text, with or without a file.
fn settings_text(mut config: Config) -> String {
    config.file = None;
    format!("{config:?}")
}
