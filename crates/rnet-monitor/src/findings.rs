//! What is found when a domain is looked at, in words.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Looked at, and well.
    Ok,
    /// Worth knowing; nothing to do.
    Note,
    /// Something keeps messages from arriving, or soon will.
    Problem,
}

/// One thing that was found.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Which check found it, a stable word for programs: `directory`, `type`, `qos`, …
    pub check: &'static str,
    /// What is so, in a sentence.
    pub what: String,
    /// What to do; every problem has it.
    pub advice: Option<String>,
}

/// Collects findings, in the order in which was looked.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    fn add(&mut self, level: Level, check: &'static str, what: String, advice: Option<String>) {
        self.0.push(Finding { level, check, what, advice });
    }

    /// Looked at, and well.
    pub fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(Level::Ok, check, what.into(), None);
    }

    /// Worth knowing.
    pub fn note(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(Level::Note, check, what.into(), None);
    }

    /// Worth knowing, and this is what may be done.
    pub fn note_with(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Level::Note, check, what.into(), Some(advice.into()));
    }

    /// Something is wrong, and this is what to do.
    pub fn problem(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Level::Problem, check, what.into(), Some(advice.into()));
    }
}
