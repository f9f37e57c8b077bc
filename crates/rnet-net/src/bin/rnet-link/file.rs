//! The file with the settings, looked at while the link runs.

use std::fs;
use std::path::PathBuf;
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
    /// The settings in force, as text.
    config: String,
    looked: Instant,
    /// Its text at the last look, and when it was understood, or was not.
    last: Option<Result<Vec<u8>, String>>,
    judged: Option<Result<Vec<u8>, String>>,
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
        let path = Config::path(&given);
        let (was_there, config) = (config.file.is_some(), said(config.clone()));
        let looked = Instant::now();
        let (last, judged, mistaken) = (None, None, None);
        Watched { given, path, was_there, config, looked, last, judged, mistaken }
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
        let now = Some(fs::read(&self.path).map_err(told));
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
        match Config::load(&self.given) {
            Ok(config) => (said(config) != self.config).then_some(Change::Settings),
            Err(error) => Some(Change::Mistake(error.to_string())),
        }
    }
}

/// The settings as text, whether or not there is a file.
fn said(mut config: Config) -> String {
    config.file = None;
    format!("{config:?}")
}
