//! `rnet blackbox`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use rnet_launch::Record;
use rnet_monitor::link::own_host;
use rnet_record::RecordError;
use rnet_record::blackbox::{
    BlackBox, BlackBoxOptions, ExpectedExits, STATUS_SERVICE, TRIGGER_SERVICE, Trigger,
    default_memory, file_document, file_row, list_files, recover, status_rows,
};
use rnet_record::read::Recording;
use serde_json::{Value, json};

use crate::bag::file;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::shared_args::{NodeArg, bytes, seconds};
use crate::{launch, record, signal, table};
use rnet_format::text::escape_controls;

/// The default folder of the files.
pub const DEFAULT_FOLDER: &str = "blackbox";

#[derive(Debug, Subcommand)]
pub enum BlackBoxCommand {
    /// Run a black box: keep the last seconds in memory and save them to a file on a trigger
    ///
    /// The box does not slow publishers: like `rnet record`, it is an observer. It is the node /blackbox; a domain
    /// has at most one. Triggers are `/TOPIC.FIELD < NUMBER` (or <= > >= == !=), `death [NODE]`, `loss [TOPIC]`,
    /// `deadline [TOPIC]`, `fallback [COMMAND]` and `log LEVEL [TEXT]`; overlapping triggers are saved to one file.
    /// Ctrl-C stops the box.
    Run(RunArgs),
    /// Make the running box save a file
    Trigger {
        /// Reason, in your own words
        #[arg(value_name = "WHY")]
        why: String,
    },
    /// Show the status of the running box: memory, fired triggers, last file
    Status,
    /// List the saved files and the triggers that fired for each
    List {
        /// The folder [default: the running box's, else that of rnet launch, else blackbox]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Recover the data that a killed box left; the next box does the same
    Recover {
        /// The folder of its files [default: that of rnet launch, else blackbox]
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Save a file when this trigger fires; repeatable
    #[arg(short, long = "trigger", value_name = "TRIGGER")]
    pub triggers: Vec<Trigger>,
    /// Seconds to keep before the first trigger of a file
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub before: Duration,
    /// Seconds to keep after the last trigger of a file
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub after: Duration,
    /// Memory limit of the box, including the ring: at least 64M [default: 256M, or a quarter of the file system]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Folder for the files
    #[arg(short, long, value_name = "FOLDER", default_value = DEFAULT_FOLDER)]
    pub output: PathBuf,
    /// Delete the oldest files to keep the total size below this many bytes
    #[arg(long, value_name = "BYTES", default_value = "200M", value_parser = bytes)]
    pub max_disk: u64,
    /// Exclude this topic, or topics that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
}

/// Interval between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for an answer of the black box.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

pub fn run(context: &mut Context, command: BlackBoxCommand) -> Outcome {
    match command {
        BlackBoxCommand::Run(args) => run_box(context, args),
        BlackBoxCommand::Trigger { why } => {
            call_and_print(context, TRIGGER_SERVICE, why.as_bytes(), print_trigger_reply)
        }
        BlackBoxCommand::Status => call_and_print(context, STATUS_SERVICE, b"", print_status),
        BlackBoxCommand::List { folder } => {
            let is_named = folder.is_some();
            let folder = folder_of(context, folder)?;
            list(context, &folder, is_named)
        }
        BlackBoxCommand::Recover { folder } => {
            let folder = folder_of(context, folder)?;
            recover_data(context, &folder)
        }
    }
}

fn run_box(context: &mut Context, args: RunArgs) -> Outcome {
    let mut options = BlackBoxOptions::default();
    for topic in &args.exclude {
        options.selection = options.selection.exclude(topic)?;
    }
    options.triggers = args.triggers;
    options.before = args.before;
    options.after = args.after;
    options.memory_len_bytes = match args.memory {
        Some(memory) => memory,
        None => default_memory(&context.location()?),
    };
    options.folder = args.output;
    options.max_disk = args.max_disk;
    options.host = Some(own_host(&context.domain()?.snapshot()?));
    options.location = Some(context.location()?);
    options.command_line = record::command_line();
    if let Ok(launches) = launch::run_folder(context) {
        // The operator already knows of deliberate stops: the end of a launch, `rnet node stop` and `kill`.
        let is_notified = move |session: &i32| {
            // A process number of an earlier boot does not identify a session of this boot.
            let ends = |record: &Record| {
                record.keeper.is_of_this_boot()
                    && (record.stopped_keepers.contains(session)
                        || launches.was_killed(&record.node, *session))
            };
            Record::all(&launches).iter().any(ends)
        };
        options.expected =
            Some(ExpectedExits::new(rnet_launch::session, move |session| is_notified(&session)));
    }
    let blackbox = BlackBox::start(options)?;
    let begun = blackbox.status();
    context.eprintln(format_args!(
        "black box of domain {}: keeps up to {} in {}",
        begun.domain,
        table::bytes(begun.memory_bytes as f64),
        begun.ring.display()
    ));
    let mut is_stopped = false;
    while !blackbox.is_finished() && !is_stopped {
        std::thread::sleep(STOP_CHECK_INTERVAL);
        is_stopped = signal::stop_requested();
        record::print_notes(context, blackbox.take_notes());
    }
    let ended = blackbox.stop()?;
    let (messages, missing, files) = (ended.messages, ended.missing, ended.files);
    context.eprintln(format_args!(
        "{messages} messages kept, {missing} missed; {files} files written"
    ));
    let mut wrong: Vec<String> =
        ended.problems.iter().map(|(of, why)| format!("could not write its {of}: {why}")).collect();
    if ended.lost_files > 0 {
        wrong.push(format!("{} files were removed before they were written", ended.lost_files));
    }
    if ended.incomplete_files > 0 {
        let count = ended.incomplete_files;
        wrong
            .push(format!("{count} files are incomplete: not everything could be written in time"));
    }
    match is_stopped {
        _ if !wrong.is_empty() => {
            Err(Failure::Failed(format!("the black box stopped; {}", wrong.join("; "))))
        }
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// The folder of the black box files: the named one, otherwise that of the running black box, otherwise
/// that of launches if it exists, otherwise that of `rnet blackbox run`.
fn folder_of(context: &mut Context, named: Option<PathBuf>) -> Outcome<PathBuf> {
    if let Some(named) = named {
        return Ok(named);
    }
    if let Some(status) = call(context, STATUS_SERVICE, b"")? {
        return Ok(status["folder"].as_str().unwrap_or_default().into());
    }
    let of_launches = launch::run_folder(context).map(|folder| folder.blackbox()).ok();
    Ok(of_launches.filter(|folder| folder.is_dir()).unwrap_or_else(|| DEFAULT_FOLDER.into()))
}

/// Calls a service of the black box; `None` if no black box runs.
fn call(context: &mut Context, service: &str, request: &[u8]) -> Outcome<Option<Value>> {
    let servers = context.domain()?.snapshot()?;
    if !servers.servers().iter().any(|server| server.service == service) {
        return Ok(None);
    }
    let node = context.node("blackbox", &NodeArg::default())?;
    let reply = node.call_timeout::<[u8], [u8]>(service, request, CALL_TIMEOUT)?;
    let status = serde_json::from_slice(&reply);
    status
        .map(Some)
        .map_err(|error| Failure::Failed(format!("the reply of {service} is not JSON: {error}")))
}

/// Calls a service of the black box, and prints its reply.
fn call_and_print(
    context: &mut Context,
    service: &str,
    request: &[u8],
    tell: fn(&mut Context, &Value) -> Outcome,
) -> Outcome {
    let Some(status) = call(context, service, request)? else {
        let domain = context.domain()?;
        let why =
            format!("domain {} has no black box; start one with rnet blackbox run", domain.id());
        return Err(Failure::Failed(why));
    };
    match context.json() {
        true => context.document(&status)?,
        false => tell(context, &status)?,
    }
    // A running black box that cannot write is a failure.
    let problems: Vec<String> = status["problems"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(of, why)| format!("cannot write its {of}: {}", why.as_str().unwrap_or("?")))
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => {
            let why = format!("the black box {}", problems.join("; "));
            Err(Failure::Failed(escape_controls(&why).into_owned()))
        }
    }
}

fn print_trigger_reply(context: &mut Context, status: &Value) -> Outcome {
    let pending = status["pending"].as_str();
    context.line(format_args!("requested {}", escape_controls(pending.unwrap_or("a file"))))
}

/// Lists the files, oldest first. Problems of one file are reported, and do not affect the rows of the
/// others.
fn list(context: &mut Context, folder: &Path, is_named: bool) -> Outcome {
    let files = match list_files(folder, &context.location()?) {
        // No black box has run yet with the default directory.
        Err(RecordError::File { source, .. })
            if !is_named && source.kind() == std::io::ErrorKind::NotFound =>
        {
            Vec::new()
        }
        files => files?,
    };
    let (mut rows, mut documents) = (Vec::new(), Vec::new());
    let mut damaged = 0;
    for (path, len_bytes) in files {
        match Recording::open(&path) {
            Ok(recording) => {
                file::report_damage(context, &recording);
                damaged += usize::from(!recording.info().problems.is_empty());
                let document = file_document(&recording, len_bytes);
                if let Some(why) = document["incomplete"].as_str() {
                    let text = format!("{} is incomplete: {why}", path.display());
                    record::print_notes(context, vec![text]);
                }
                rows.push(file_row(&document));
                documents.push(document);
            }
            Err(error) => {
                damaged += 1;
                file::report_problem(context, &path, &error);
                let error = error.to_string();
                documents.push(json!({ "file": path, "len_bytes": len_bytes, "error": error }));
            }
        }
    }
    if context.json() {
        context.document(&json!(documents))?;
    } else {
        table::print(context, &["FILE", "SIZE", "MESSAGES", "TRIGGERS", "FIRST"], &rows)?;
    }
    if damaged == 0 {
        return Ok(());
    }
    let files = if damaged == 1 { "a file".to_owned() } else { format!("{damaged} files") };
    let why =
        format!("{files} in {} damaged; see rnet bag check and rnet bag recover", folder.display());
    Err(Failure::Failed(why))
}

fn recover_data(context: &mut Context, folder: &Path) -> Outcome {
    let (files, notes) = recover(&context.location()?, folder)?;
    record::print_notes(context, notes);
    if context.json() {
        return context.document(&json!(files));
    }
    if files.is_empty() {
        context.eprintln(format_args!("nothing to recover: no killed black box left data"));
    }
    files.iter().try_for_each(|file| context.line(format_args!("{}", file.display())))
}

fn print_status(context: &mut Context, status: &Value) -> Outcome {
    // The reason comes from a caller and is untrusted.
    status_rows(status).iter().try_for_each(|(name, said)| {
        context.line(format_args!("{name:<10}{}", escape_controls(said)))
    })
}
