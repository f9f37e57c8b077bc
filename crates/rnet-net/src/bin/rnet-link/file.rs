//! The file with the settings, looked at while the link runs.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rnet_net::config::{Config, Given};

use crate::told;

/// Between two looks. What is looked at has stood still from one to the next, so no half-written file is read.
const PERIOD: Duration = Duration::from_millis(500);

/// The file of which the settings in force were read.
pub struct Watched {
    given: Given,
    path: Option<PathBuf>,
    /// The settings in force, as text.
    config: String,
    looked: Instant,
    /// Its text at the last look, and when it was understood, or was not.
    last: Option<Result<Vec<u8>, String>>,
    judged: Option<Result<Vec<u8>, String>>,
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
        let (path, config) = (config.file.clone(), format!("{config:?}"));
        Watched { given, path, config, looked: Instant::now(), last: None, judged: None }
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or_else(String::new, |path| path.display().to_string())
    }

    /// What has become of it since the last call. The first one also tells what was so before.
    pub fn change(&mut self) -> Option<Change> {
        let path = self.path.as_ref().filter(|_| self.looked.elapsed() >= PERIOD)?;
        self.looked = Instant::now();
        let now = Some(fs::read(path).map_err(told));
        let stands_still = self.last == now;
        self.last = now;
        if !stands_still || self.judged == self.last {
            return None;
        }
        self.judged = self.last.clone();
        if let Some(Err(error)) = &self.judged {
            return Some(Change::Mistake(format!("it cannot be read: {error}")));
        }
        match Config::load(&self.given) {
            Ok(config) if format!("{config:?}") == self.config => None,
            Ok(_) => Some(Change::Settings),
            Err(error) => Some(Change::Mistake(error.to_string())),
        }
    }
}
