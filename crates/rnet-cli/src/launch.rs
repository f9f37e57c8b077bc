//! `rnet launch`: the library's launcher, with this program's stdout, signals and domain.

pub mod keeper;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use rnet::NodeName;
use rnet::inspect::Domain;
use rnet_launch::{
    LaunchError, LaunchOptions, Launcher, LauncherContext, NodeStatus, OWN_PROGRAM, RunFolder,
    StopSignals,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::global::Global;
use crate::shared_args::NodeArg;
use crate::{signal, table};
use rnet_format::text::escape_controls;

/// Launch, supervise and stop the nodes of a robot.
///
/// The file lists the nodes, their start order and what happens when one exits. Ctrl-C stops them in reverse order.
/// If the launcher is killed, the nodes keep running; the next launch takes over the running nodes.
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The file [env: RNET_CONFIG] [default: robot.toml]
    pub file: Option<PathBuf>,
    /// Start only the nodes of this host [env: RNET_HOST] [default: network.host of the file, else the system's host
    /// name]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Override a variable of the file; repeatable
    #[arg(long, value_name = "VARIABLE=VALUE", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Show a live table of the nodes
    #[arg(short, long)]
    pub watch: bool,
    /// Apply changes of the file: restart changed nodes, start new ones, stop removed ones
    #[arg(long)]
    pub reload: bool,
    /// Validate the file: print the nodes in start order; fail if the file or this machine lacks what they need
    #[arg(long, conflicts_with_all = ["watch", "reload"])]
    pub check: bool,
    /// For bindings: the process that launches; if it dies, this process dies as if killed
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<i32>,
}

/// The arguments of a keeper: what it is told besides comes by its standard input.
#[derive(Debug, Args)]
pub struct KeeperArgs {
    /// The node's name, shown in process lists
    pub node: NodeName,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected VARIABLE=VALUE: '=' is missing")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// How often the table is drawn.
const TABLE_INTERVAL: Duration = Duration::from_secs(1);

/// The failure of a launch operation.
pub fn failure(error: LaunchError) -> Failure {
    match error {
        LaunchError::Rnet(error) => error.into(),
        LaunchError::Stopped => Failure::Interrupted,
        error => Failure::Failed(error.to_string()),
    }
}

pub fn run(context: &mut Context, args: LaunchArgs) -> Outcome {
    args.parent.map_or(Ok(()), die_with_parent)?;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let file = args.file.or_else(|| set("RNET_CONFIG").map(PathBuf::from));
    let file = file.unwrap_or_else(|| PathBuf::from("robot.toml"));
    let by_env = || set("RNET_HOST").map(|host| host.to_string_lossy().into_owned());
    let blackbox = run_folder(context).map(|folder| folder.blackbox()).unwrap_or_default();
    let choices =
        LaunchOptions { host: args.host.clone().or_else(by_env), set: args.set, blackbox };
    let plan = rnet_launch::load(&file, &choices).map_err(failure)?;
    args.host.as_deref().map_or(Ok(()), |host| plan.check_host(host)).map_err(failure)?;
    for (node, of) in &plan.unstarted_dependencies {
        let text = format_args!("rnet: {node} does not wait for {of}, which is not started here");
        context.eprintln(text);
    }
    if let Some(why) = plan.nothing_to_start_reason() {
        context.eprintln(format_args!("rnet: {why}"));
    }
    if args.check {
        return check_plan(context, &plan);
    }
    let folder = run_folder(context)?;
    let mut terminal = LauncherTerminal {
        file: plan.file,
        host: args.host,
        watch: args.watch,
        drawn: None,
        context,
    };
    let launcher =
        Launcher::new(file, choices, folder, args.reload, &mut terminal).map_err(failure)?;
    signal::handle_second_signal();
    let outcome = launcher.run().map_err(failure)?;
    for (node, how) in &outcome.still_running {
        terminal.report_still_running(node, how);
    }
    if !outcome.failed.is_empty() {
        let each = outcome.failed.iter().map(|(node, why)| format!("{node}: {why}"));
        return Err(Failure::Failed(each.collect::<Vec<_>>().join("; ")));
    }
    if outcome.is_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Asks the kernel to kill this process when `parent` dies. To its user a binding is the launcher, so its
/// death has the effect of a launcher's: nodes continue, and the next launch finds the file unlocked.
fn die_with_parent(parent: i32) -> Outcome {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from)?;
    if getppid().map(Pid::as_raw_nonzero).is_none_or(|pid| pid.get() != parent) {
        return Err(Failure::Failed(format!("--parent {parent} is not this process's parent")));
    }
    Ok(())
}

/// The folder in which the domain's launches keep their records.
pub fn run_folder(context: &Context) -> Outcome<RunFolder> {
    let domain = context.domain()?;
    RunFolder::of_domain(domain.path(), &|name| std::env::var_os(name)).map_err(failure)
}

/// The command of a keeper in the context's domain.
pub fn keeper_command(context: &Context) -> Command {
    keeper_command_factory(context.global())()
}

/// The same for a caller that starts keepers later, on its own thread.
pub fn keeper_command_factory(global: &Global) -> impl Fn() -> Command + Send + Sync + use<> {
    let domain = global.domain.as_ref().map(|domain| domain.as_str().to_owned());
    let (dir, group) = (global.dir.clone(), global.group.clone());
    move || {
        // This running program, even if another version of it has been installed since.
        let mut command = Command::new("/proc/self/exe");
        command.arg("launch-keeper");
        if let Some(domain) = &domain {
            command.env("RNET_DOMAIN", domain);
        }
        if let Some(dir) = &dir {
            command.env("RNET_DIR", dir);
        }
        if let Some(group) = &group {
            command.env("RNET_GROUP", group);
        }
        command
    }
}

/// Reports stop requests by signals to the launcher.
pub struct ProcessSignals;

impl StopSignals for ProcessSignals {
    fn stop_requested(&self) -> bool {
        signal::stop_requested()
    }

    fn wait(
        &self,
        fd: BorrowedFd<'_>,
        limit: Option<Duration>,
        knows: bool,
    ) -> std::io::Result<()> {
        signal::wait_readable_for(fd, limit, knows)
    }
}

/// Prints the plan, and fails if it does not fit this machine.
fn check_plan(context: &mut Context, plan: &rnet_launch::Plan) -> Outcome {
    let unfit: Vec<String> = plan.requirement_errors().iter().map(ToString::to_string).collect();
    if context.json() {
        let nodes = plan.nodes.iter().map(
            |node| json!({"node": node.name, "command": node.process.command, "after": node.after}),
        );
        let nodes: Vec<_> = nodes.collect();
        let (file, host) = (&plan.file, &plan.host);
        context.document(&json!({"file": file, "host": host, "nodes": nodes, "unfit": unfit}))?;
    } else {
        let rows: Vec<Vec<String>> = plan
            .nodes
            .iter()
            .map(|node| {
                let after: Vec<&str> = node.after.iter().map(NodeName::as_str).collect();
                let command = node.process.command.join(" ").replace(OWN_PROGRAM, "rnet");
                vec![node.name.to_string(), after.join(", "), command]
            })
            .collect();
        table::print(context, &["NODE", "AFTER", "COMMAND"], &rows)?;
        context.flush()?;
        unfit.iter().for_each(|error| context.eprintln(format_args!("rnet: {error}")));
    }
    if unfit.is_empty() { Ok(()) } else { Err(Failure::AlreadyReported) }
}

/// The terminal of the launcher, or what reads its output.
struct LauncherTerminal<'c> {
    context: &'c mut Context,
    file: PathBuf,
    host: Option<String>,
    watch: bool,
    drawn: Option<(Instant, Vec<NodeStatus>)>,
}

impl StopSignals for LauncherTerminal<'_> {
    fn stop_requested(&self) -> bool {
        signal::stop_requested()
    }

    fn wait(
        &self,
        fd: BorrowedFd<'_>,
        limit: Option<Duration>,
        knows: bool,
    ) -> std::io::Result<()> {
        ProcessSignals.wait(fd, limit, knows)
    }
}

impl LauncherContext for LauncherTerminal<'_> {
    fn keeper(&self, node: &NodeName) -> Command {
        let mut command = keeper_command(self.context);
        // The nodes' link reads the same file.
        command.arg(node.as_str()).env("RNET_CONFIG", &self.file);
        if let Some(host) = &self.host {
            command.env("RNET_HOST", host);
        }
        command
    }

    fn domain(&self) -> rnet::Result<Domain> {
        self.context.location()?.domain()
    }

    fn node(&self) -> rnet::Result<rnet::Node> {
        self.context.open_node("launch", &NodeArg::default())
    }

    fn second_stop_requested(&self) -> bool {
        signal::stop_requested_twice()
    }

    fn event(&mut self, node: &NodeName, what: &str, detail: &str) {
        if self.watch {
            return;
        }
        // A closed stdout is no reason to stop a robot.
        let _ = match self.context.json() {
            true => self.context.json_line(&json!({"node": node, "event": what, "detail": detail})),
            false => {
                let blank = if detail.is_empty() { "" } else { "  " };
                // A node may write anything; only its line breaks are kept.
                let lines: Vec<_> = detail.lines().map(escape_controls).collect();
                self.context.line(format_args!("{node}  {what}{blank}{}", lines.join("\n")))
            }
        };
        let _ = self.context.flush();
    }

    fn say(&mut self, text: &str) {
        self.context.eprintln(format_args!("rnet: {text}"));
    }

    fn status(&mut self, rows: &[NodeStatus]) {
        if !self.watch {
            return;
        }
        let on_terminal = self.context.on_terminal();
        let still =
            |row: &NodeStatus| NodeStatus { for_s: 0, detail: String::new(), ..row.clone() };
        let now: Vec<NodeStatus> = rows.iter().map(still).collect();
        let is_due = self.drawn.as_ref().is_none_or(|(at, before)| {
            *before != now || (on_terminal && at.elapsed() >= TABLE_INTERVAL)
        });
        if !is_due {
            return;
        }
        self.drawn = Some((Instant::now(), now));
        let _ = self.draw(rows, on_terminal);
        let _ = self.context.flush();
    }
}

impl LauncherTerminal<'_> {
    /// Reports a node that outlives the launcher after a second stop request. A table has no column for it.
    fn report_still_running(&mut self, node: &NodeName, how: &str) {
        match self.watch {
            true => self.say(&format!("{node} keeps running: {how}")),
            false => self.event(node, "goes-on", how),
        }
    }

    fn draw(&mut self, rows: &[NodeStatus], on_terminal: bool) -> Outcome {
        if self.context.json() {
            return self.context.json_line(&json!({"nodes": rows}));
        }
        if on_terminal {
            // Moves the cursor to the top left corner and clears the screen below.
            self.context.line(format_args!("\x1b[H\x1b[J"))?;
        }
        let cells = |row: &NodeStatus| {
            vec![
                row.node.to_string(),
                row.state.to_owned(),
                if row.is_ready { "yes" } else { "no" }.to_owned(),
                row.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
                table::uptime(Duration::from_secs(row.for_s)),
                row.restarts.to_string(),
                escape_controls(&row.detail).into_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let titles = ["NODE", "STATE", "READY", "PID ", "FOR", "RESTARTS ", "DETAIL"];
        table::print(self.context, &titles, &rows)
    }
}
