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
    /// Looked at, and well.
    pub fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, check, what: what.into(), advice: None });
    }

    /// Worth knowing.
    pub fn note(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Note, check, what: what.into(), advice: None });
    }

    /// Worth knowing, and this is what may be done.
    pub fn note_with(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let advice = Some(advice.into());
        self.0.push(Finding { level: Level::Note, check, what: what.into(), advice });
    }

    /// Something is wrong, and this is what to do.
    pub fn problem(
        &mut self,
        check: &'static str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let advice = Some(advice.into());
        self.0.push(Finding { level: Level::Problem, check, what: what.into(), advice });
    }
}
