//! The raw data: everything that was measured, as one JSON file.

use crate::machine::Machine;
use crate::memory::Memory;
use crate::registry::Entry;
use bench_harness::file::write_whole;
use bench_harness::result::PhaseResult;
use bench_harness::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A whole comparison.
#[derive(Serialize, Deserialize)]
pub struct Raw {
    /// The format of this file: 1.
    pub format: u32,
    /// Where it ran.
    pub machine: Machine,
    /// How it was run.
    pub options: Options,
    /// The compared systems.
    pub systems: BTreeMap<String, Entry>,
    /// On what.
    pub workloads: BTreeMap<String, Workload>,
    /// Omitted combinations, with reasons.
    pub skipped: Vec<Skipped>,
    /// The results.
    pub runs: Vec<Run>,
    /// Criterion's figures of study 3, and the delivered messages.
    pub study3: Option<serde_json::Value>,
}

/// How the comparison was run.
#[derive(Serialize, Deserialize)]
pub struct Options {
    /// Repetitions.
    pub repeat: usize,
    /// Whether it was a short one.
    pub quick: bool,
    /// Durations were multiplied by this.
    pub scale: f64,
    /// When it started, UTC.
    pub started: String,
    /// How long it took.
    pub elapsed_s: f64,
    /// The command line.
    pub command: String,
}

/// A workload, for the report.
#[derive(Clone, Serialize, Deserialize)]
pub struct Workload {
    /// Its heading.
    pub title: String,
    /// Description in one or two sentences.
    pub about: String,
    /// Which systems took part.
    pub systems: Vec<String>,
}

/// A combination that was not run.
#[derive(Serialize, Deserialize)]
pub struct Skipped {
    /// The workload.
    pub workload: String,
    /// Its variant; empty means all.
    pub variant: String,
    /// The system.
    pub system: String,
    /// Why.
    pub why: String,
}

/// One run: one system, one variant of a workload, once.
#[derive(Serialize, Deserialize)]
pub struct Run {
    /// The workload.
    pub workload: String,
    /// Its variant.
    pub variant: String,
    /// The system.
    pub system: String,
    /// Which repetition, from 0.
    pub repetition: usize,
    /// Why it did not come to its end.
    pub error: Option<String>,
    /// How long it took, with starting and stopping.
    pub elapsed_s: f64,
    /// The phases that came to their end.
    pub phases: Vec<Phase>,
}

/// One phase of a run.
#[derive(Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub label: String,
    /// Bytes of each message, where they are all of one length.
    pub len: Option<usize>,
    /// Messages per second and publisher, where they are paced.
    pub rate_hz: Option<f64>,
    /// From `go` to the last worker's `done`.
    pub elapsed_s: f64,
    /// Memory of all processes at its end, if the kernel reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Between two hosts: bytes on the cable, both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes: Option<u64>,
    /// Each process that took part, the server included.
    pub processes: Vec<Process>,
}

/// One process in one phase.
#[derive(Serialize, Deserialize)]
pub struct Process {
    /// "publisher 0", "subscriber 1", "link a", "server", the node's name.
    pub name: String,
    /// CPU time used in the phase.
    pub cpu_ns: u64,
    /// Resident memory at its end.
    pub rss_kib: u64,
    /// The most so far.
    pub rss_peak_kib: u64,
    /// Measurements of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PhaseResult>,
}

impl Raw {
    /// Writes the file, compressed when its name ends in `.gz`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_whole(path, |out| {
            if path.extension().is_some_and(|e| e == "gz") {
                let mut out = flate2::write::GzEncoder::new(out, flate2::Compression::best());
                serde_json::to_writer(&mut out, self)?;
                out.finish()?;
            } else {
                serde_json::to_writer(out, self)?;
            }
            Ok(())
        })
    }

    /// Reads such a file.
    ///
    /// # Errors
    /// When it cannot be read or is of another format.
    pub fn read(path: &Path) -> Result<Self> {
        let named = |e: &dyn std::fmt::Display| Error::new(format!("{}: {e}", path.display()));
        let mut bytes = std::fs::read(path).map_err(|e| named(&e))?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&bytes[..])
                .read_to_end(&mut plain)
                .map_err(|e| named(&e))?;
            bytes = plain;
        }
        let raw: Self = serde_json::from_slice(&bytes).map_err(|e| named(&e))?;
        if raw.format != 1 {
            return Err(named(&format!("format {} is not known, only 1 is", raw.format)));
        }
        Ok(raw)
    }
}
