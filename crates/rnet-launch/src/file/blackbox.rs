//! `[blackbox]`: the black box runs beside the nodes unless the file disables it.

use std::path::{Path, PathBuf};

use rnet::NodeName;
use rnet::limits::MAX_TOPIC_LEN_BYTES;
use rnet_config::{Entry, Result, Table};
use rnet_record::blackbox::{DEFAULT_MAX_DISK_BYTES, MAX_TIME, MIN_MEMORY_BYTES, Trigger};

use super::node::whole_in_range;
use super::vars::Vars;
use crate::node::{LogLimits, Node, OWN_PROGRAM, Process};

const KEYS: [&str; 8] = [
    "enabled",
    "before_s",
    "after_s",
    "memory_mib",
    "triggers",
    "output",
    "max_disk_mib",
    "exclude",
];

/// Triggers that are bad for any robot. Deadlines and losses depend on the robot.
const DEFAULT_TRIGGERS: [&str; 3] = ["death", "fallback", "log fatal"];
const MAX_MIB: u64 = 1 << 20;
const DEFAULT_BEFORE_S: f64 = 30.0;
const DEFAULT_AFTER_S: f64 = 5.0;
/// It has to finish writing, possibly to a slow disk.
const INTERRUPT_TIMEOUT_MS: u64 = 30_000;
/// The second signal ends it at once.
const STOP_TIMEOUT_MS: u64 = 1_000;

/// The settings of the black box.
pub struct BlackBoxSettings {
    is_enabled: bool,
    before_s: f64,
    after_s: f64,
    /// `None`: the black box decides.
    memory_mib: Option<u64>,
    max_disk_mib: u64,
    triggers: Vec<String>,
    exclude: Vec<String>,
    output: Option<PathBuf>,
}

impl Default for BlackBoxSettings {
    fn default() -> BlackBoxSettings {
        BlackBoxSettings {
            is_enabled: true,
            before_s: DEFAULT_BEFORE_S,
            after_s: DEFAULT_AFTER_S,
            memory_mib: None,
            max_disk_mib: DEFAULT_MAX_DISK_BYTES >> 20,
            triggers: DEFAULT_TRIGGERS.map(str::to_owned).to_vec(),
            exclude: Vec::new(),
            output: None,
        }
    }
}

impl BlackBoxSettings {
    /// Reads the table of a file in `dir`.
    pub fn read(table: &Table<'_>, vars: &Vars, dir: &Path) -> Result<BlackBoxSettings> {
        table.check_keys(&KEYS)?;
        let none = BlackBoxSettings::default();
        let max_s = MAX_TIME.as_secs_f64();
        let seconds = |key| table.optional(key, |entry| entry.number("seconds", 0.0..=max_s));
        let words = |entry: &Entry<'_>, read: &dyn Fn(&Entry<'_>, &str) -> Result<()>| {
            entry.each(|entry| {
                let text = vars.expand(entry, entry.text("a string")?)?;
                read(entry, &text)?;
                Ok(text)
            })
        };
        let trigger = |entry: &Entry<'_>, text: &str| {
            let read = text.parse::<Trigger>();
            read.map(drop).map_err(|error| entry.wrong(format!("a trigger ({error})")))
        };
        let pattern = |entry: &Entry<'_>, text: &str| {
            let read = rnet::NamePattern::new("topic pattern", text, MAX_TOPIC_LEN_BYTES);
            read.map(drop).map_err(|error| entry.wrong(format!("a topic pattern ({error})")))
        };
        let least_mib = MIN_MEMORY_BYTES >> 20;
        Ok(BlackBoxSettings {
            is_enabled: table.optional("enabled", Entry::boolean)?.unwrap_or(true),
            before_s: seconds("before_s")?.unwrap_or(none.before_s),
            after_s: seconds("after_s")?.unwrap_or(none.after_s),
            memory_mib: table
                .optional("memory_mib", |entry| whole_in_range(entry, least_mib..=MAX_MIB))?,
            max_disk_mib: table
                .optional("max_disk_mib", |entry| whole_in_range(entry, 1..=MAX_MIB))?
                .unwrap_or(none.max_disk_mib),
            triggers: table
                .optional("triggers", |entry| words(entry, &trigger))?
                .unwrap_or(none.triggers),
            exclude: table.optional("exclude", |entry| words(entry, &pattern))?.unwrap_or_default(),
            output: table
                .optional("output", |entry| {
                    vars.expand(entry, entry.text("the path of a directory")?)
                })?
                .map(|below| dir.join(below)),
        })
    }

    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Its node. Its files go to `output` unless the file specifies a directory.
    pub fn node(&self, name: NodeName, dir: &Path, output: &Path) -> Node {
        let mib = |mib: u64| (mib << 20).to_string();
        let output = self.output.clone().unwrap_or_else(|| dir.join(output));
        let mut command: Vec<String> = [OWN_PROGRAM, "blackbox", "run"].map(str::to_owned).into();
        let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
        option("--before", self.before_s.to_string());
        option("--after", self.after_s.to_string());
        self.memory_mib.iter().for_each(|memory| option("--memory", mib(*memory)));
        option("--max-disk", mib(self.max_disk_mib));
        option("--output", output.to_string_lossy().into_owned());
        self.triggers.iter().for_each(|trigger| option("--trigger", trigger.clone()));
        self.exclude.iter().for_each(|topic| option("--exclude", topic.clone()));
        let process = Process {
            command,
            dir: dir.to_owned(),
            env: Default::default(),
            params: Default::default(),
            limits: Default::default(),
            interrupt_timeout_ms: INTERRUPT_TIMEOUT_MS,
            stop_timeout_ms: STOP_TIMEOUT_MS,
            die_with_launcher: false,
            log: LogLimits { max_len_bytes: 1 << 20, files: 2 },
        };
        Node { is_companion: true, ..Node::new(name, process) }
    }
}
