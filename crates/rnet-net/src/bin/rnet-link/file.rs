//! The file with the settings, looked at while the link runs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rnet_net::config::{Config, Given};

use crate::told;

/// Between two looks. What is looked at has stood still from one to the next, so no half-written file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// After this time a mistake is told again: the link forgets what was wrong.
const AGAIN: Duration = Duration::from_secs(300);

/// The file of which the settings in force were read, or would have been if it had been there.
pub struct Watched {
    given: Given,
    path: PathBuf,
    /// Whether it was there. One that was not may be made.
    was_there: bool,
    /// Whether somebody has named it.
    is_named: bool,
    /// The settings in force, as text.
    config: String,
    looked: Instant,
    /// Its text at the last look, and when it was understood, or was not.
    last: Option<Result<String, String>>,
    judged: Option<Result<String, String>>,
    /// When a mistake in it was told, if there is one.
    mistaken: Option<Instant>,
}

/// What has become of the file.
pub enum Change {
    /// It says something else.
    Settings,
    /// It cannot be read or understood, as this says.
    Mistake(String),
}

impl Watched {
    pub fn new(given: Given, config: &Config) -> Watched {
        let (path, named_by) = Config::path(&given);
        let (was_there, config) = (config.file.is_some(), said(config.clone()));
        let looked = Instant::now();
        let (last, judged, mistaken) = (None, None, None);
        let is_named = named_by.is_some();
        Watched { given, path, was_there, is_named, config, looked, last, judged, mistaken }
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What has become of it since the last call. The first one also tells what was so before.
    pub fn change(&mut self) -> Option<Change> {
        if self.looked.elapsed() < PERIOD {
            return None;
        }
        self.looked = Instant::now();
        let now = Some(rnet_config::text(&self.path).map_err(told));
        let stands_still = self.last == now;
        self.last = now;
        let again = self.mistaken.is_some_and(|told| told.elapsed() >= AGAIN);
        if !stands_still || (self.judged == self.last && !again) {
            return None;
        }
        self.judged = self.last.clone();
        let change = self.judge();
        let is_mistake = matches!(change, Some(Change::Mistake(_)));
        self.mistaken = is_mistake.then(Instant::now);
        change
    }

    fn judge(&self) -> Option<Change> {
        // One that is gone is a mistake: the settings of none would end the link.
        if let Some(Err(error)) = &self.judged
            && self.was_there
        {
            return Some(Change::Mistake(format!("it cannot be read: {error}")));
        }
        if !self.was_there
            && !self.is_named
            && self.judged.as_ref().is_some_and(Result::is_ok)
            && let Err(why) = check_made_by_us(&self.path)
        {
            return Some(Change::Mistake(why));
        }
        match Config::load(&self.given) {
            Ok(config) => match config.check_insecure() {
                Ok(()) => (said(config) != self.config).then_some(Change::Settings),
                Err(why) => Some(Change::Mistake(why)),
            },
            Err(error) => Some(Change::Mistake(error.to_string())),
        }
    }
}

/// A file that appears where the link happens to run is read only if nobody else can have made it, as in `/tmp`.
fn check_made_by_us(path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    for place in [path, folder.unwrap_or(Path::new("."))] {
        let found = std::fs::metadata(place).map_err(told)?;
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
fn said(mut config: Config) -> String {
    config.file = None;
    format!("{config:?}")
}
