//! Findings of checks, as text.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The check passed.
    Ok,
    /// Information without need for action.
    Note,
    /// A problem that prevents messages from arriving, or soon will.
    Problem,
}

/// The result of a check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Its severity.
    pub level: Level,
    /// The check, as a stable name for programs: `directory`, `type`, `qos`, …
    pub check: &'static str,
    /// A sentence that describes it.
    pub what: String,
    /// What to do; every problem has it.
    pub advice: Option<String>,
}

/// Collects findings in the order of the checks.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    fn add(&mut self, level: Level, check: &'static str, what: String, advice: Option<String>) {
        self.0.push(Finding { level, check, what, advice });
    }

    /// Adds a passed check.
    pub fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(Level::Ok, check, what.into(), None);
    }

    /// Adds information.
    pub fn note(&mut self, check: &'static str, what: impl Into<String>) {
        self.add(Level::Note, check, what.into(), None);
    }

    /// Adds information with advice.
    pub fn note_with(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Level::Note, check, what.into(), Some(advice.into()));
    }

    /// Adds a problem with advice.
    pub fn problem(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(Level::Problem, check, what.into(), Some(advice.into()));
    }
}
