//! The common context of commands: the domain, stdout for data, stderr for messages.

use std::fmt::Arguments;
use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::path::PathBuf;

use anstream::AutoStream;
use anstyle::Style;
use clap::ColorChoice;
use rnet::Node;
use rnet::inspect::{DEFAULT_BASE, Domain, Location};
use rnet_monitor::{Finding, Level};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::shared_args::NodeArg;
use crate::style::{HEADING, NOTE, PROBLEM};
use rnet_format::text::escape_controls;

/// stdout is written when a command pauses or this much has accumulated.
const OUT_BUFFER_LEN_BYTES: usize = 64 << 10;

/// The context of a command.
pub struct Context {
    global: Global,
    out: BufWriter<StdoutLock<'static>>,
    /// Whether stdout shows colours.
    is_coloured: bool,
}

impl Context {
    pub fn new(global: Global) -> Context {
        // It also applies to stderr.
        match global.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        }
        .write_global();
        let stdout = std::io::stdout().lock();
        // Respects NO_COLOR, TERM and CLICOLOR.
        let is_coloured = AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        let out = BufWriter::with_capacity(OUT_BUFFER_LEN_BYTES, stdout);
        Context { global, out, is_coloured }
    }

    /// Whether data is printed as JSON.
    pub fn json(&self) -> bool {
        self.global.json
    }

    /// Whether stdout is a terminal rather than a pipe or file.
    pub fn on_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    pub fn global(&self) -> &Global {
        &self.global
    }

    /// The base directory of the domains.
    pub fn domains_dir(&self) -> PathBuf {
        let set = || std::env::var_os("RNET_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        self.global.dir.clone().or_else(set).unwrap_or_else(|| PathBuf::from(DEFAULT_BASE))
    }

    /// The location of the domain to inspect.
    pub fn location(&self) -> rnet::Result<Location> {
        let Global { domain, dir, group, .. } = &self.global;
        Location::new(domain.as_ref().map(|d| d.as_str()), dir.clone(), group.clone())
    }

    /// The same, but fails if the base directory does not exist: a wrong one would look like a domain without
    /// nodes.
    pub fn existing_location(&self) -> Outcome<Location> {
        let location = self.location()?;
        match location.base().is_dir() {
            true => Ok(location),
            false => Err(Failure::Usage(format!(
                "directory {} does not exist; set the domain directory with --dir (or RNET_DIR)",
                location.base().display()
            ))),
        }
    }

    /// The domain to inspect.
    pub fn domain(&self) -> Outcome<Domain> {
        Ok(self.existing_location()?.domain()?)
    }

    /// A node in this domain, for a command that takes part: `/rnet_WHAT_PID`, unless it is named.
    pub fn node(&self, what: &str, own_node: &NodeArg) -> Outcome<Node> {
        self.existing_location()?;
        Ok(self.open_node(what, own_node)?)
    }

    /// The same, whether or not the base directory exists.
    pub fn open_node(&self, what: &str, own_node: &NodeArg) -> rnet::Result<Node> {
        let default = format!("/rnet_{what}_{}", std::process::id());
        let Global { domain, dir, group, .. } = &self.global;
        let mut builder = Node::builder(
            own_node.node_name.as_ref().map_or(default.as_str(), |name| name.as_str()),
        )
        .tool();
        if let Some(domain) = domain {
            builder = builder.domain(domain.as_str());
        }
        if let Some(dir) = dir {
            builder = builder.dir(dir);
        }
        if let Some(group) = group {
            builder = builder.group(group);
        }
        builder.open()
    }

    /// The output for data.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Prints one line of data.
    pub fn line(&mut self, text: Arguments<'_>) -> Outcome {
        self.out.write_fmt(text)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// A text in a style, on a terminal.
    pub fn styled(&self, style: Style, text: &str) -> String {
        if self.is_coloured { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Prints a heading.
    pub fn heading(&mut self, text: &str) -> Outcome {
        let text = self.styled(HEADING, text);
        self.line(format_args!("{text}"))
    }

    /// Prints the only JSON document of a command.
    pub fn document(&mut self, value: &impl Serialize) -> Outcome {
        serde_json::to_writer_pretty(&mut self.out, value).map_err(std::io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Prints one of several JSON documents, on one line.
    pub fn json_line(&mut self, value: &impl Serialize) -> Outcome {
        serde_json::to_writer(&mut self.out, value).map_err(std::io::Error::from)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> Outcome {
        self.out.flush()?;
        Ok(())
    }

    /// Prints a note on stderr. The quoted text is untrusted.
    pub fn note(&self, text: &str) {
        self.eprintln(format_args!("{NOTE}rnet:{NOTE:#} {}", escape_controls(text)));
    }

    /// Prints findings, each with its advice below it.
    pub fn findings<'f>(&mut self, findings: impl IntoIterator<Item = &'f Finding>) -> Outcome {
        for Finding { level, what, advice, .. } in findings {
            let level = match level {
                Level::Ok => "ok     ".to_owned(),
                Level::Note => self.styled(NOTE, "note   "),
                Level::Problem => self.styled(PROBLEM, "PROBLEM"),
            };
            self.line(format_args!("{level}  {what}"))?;
            if let Some(advice) = advice {
                self.line(format_args!("         -> {advice}"))?;
            }
        }
        Ok(())
    }

    /// Prints a message on stderr.
    pub fn eprintln(&self, text: Arguments<'_>) {
        // Ignores a closed stderr.
        let _ = writeln!(anstream::stderr(), "{text}");
    }
}

/// Prints a line on stderr.
pub fn print_note(text: &str) {
    // Ignores a closed stderr.
    let _ = writeln!(anstream::stderr(), "{text}");
}
