//! Completion of commands, and of the present topics, nodes and keys.
//!
//! A shell runs this program at each Tab: the script of `rnet completions` runs it with [`SHELL_VARIABLE`]
//! set, and it prints the candidates.

use std::ffi::OsStr;

use clap::{CommandFactory, Parser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use rnet::inspect::{Snapshot, is_internal};

use crate::args::{Cli, CompletionsArgs};
use crate::context::Context;
use crate::failure::Outcome;
use crate::global::Global;
use crate::service::list::Kind;
use crate::state;

/// Set by the shell's script to the name of the shell.
const SHELL_VARIABLE: &str = "RNET_COMPLETE";

/// Options that say where to look, as they may stand on the line that is being completed.
#[derive(Debug, Parser)]
#[command(ignore_errors = true, disable_help_flag = true)]
struct CompletionLine {
    #[command(flatten)]
    global: Global,
    rest: Vec<String>,
}

/// If a shell asks for candidates, prints them and ends the process.
pub fn answer_shell() {
    CompleteEnv::with_factory(command).var(SHELL_VARIABLE).bin("rnet").complete();
}

pub fn run(context: &mut Context, args: &CompletionsArgs) -> Outcome {
    let name = args.shell.name();
    if let Some(shell) = Shells::builtins().completer(name) {
        shell.write_registration(SHELL_VARIABLE, "rnet", "rnet", "rnet", context.out())?;
    }
    Ok(())
}

/// The commands, with the completers of their arguments.
fn command() -> clap::Command {
    with_candidates(Cli::command())
}

fn with_candidates(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let all: fn(&mut Context) -> Outcome<Vec<String>> = match arg.get_id().as_str() {
            "topic" => topics,
            "service" => services,
            "action" => actions,
            "node" => nodes,
            "any_node" | "to" | "from" => all_nodes,
            "key" | "keys" | "prefix" => keys,
            _ => return arg,
        };
        arg.add(ArgValueCompleter::new(move |current: &OsStr| candidates(current, all)))
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_candidates))
}

/// The candidates with the word as prefix. On an error the list is empty.
fn candidates(
    current: &OsStr,
    all: fn(&mut Context) -> Outcome<Vec<String>>,
) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let line = std::env::args().skip_while(|word| word != "--").skip(1);
    let Ok(parsed) = CompletionLine::try_parse_from(line) else { return Vec::new() };
    let names = all(&mut Context::new(parsed.global)).unwrap_or_default();
    let fits = |name: &String| name.starts_with(current) || name[1..].starts_with(current);
    names.into_iter().filter(fits).map(CompletionCandidate::new).collect()
}

fn take_snapshot(context: &Context) -> Outcome<Snapshot> {
    Ok(context.domain()?.snapshot()?)
}

fn topics(context: &mut Context) -> Outcome<Vec<String>> {
    let snapshot = take_snapshot(context)?;
    let topics = snapshot.topics().into_iter().filter(|topic| !is_internal(topic));
    Ok(topics.map(str::to_owned).collect())
}

fn services(context: &mut Context) -> Outcome<Vec<String>> {
    servers(context, Kind::Service)
}

fn actions(context: &mut Context) -> Outcome<Vec<String>> {
    servers(context, Kind::Action)
}

fn servers(context: &mut Context, kind: Kind) -> Outcome<Vec<String>> {
    let snapshot = take_snapshot(context)?;
    let names = kind.names(&snapshot).into_iter().filter(|name| !is_internal(name));
    Ok(names.map(str::to_owned).collect())
}

fn nodes(context: &mut Context) -> Outcome<Vec<String>> {
    Ok(take_snapshot(context)?.nodes.into_iter().map(|node| node.meta.name).collect())
}

fn all_nodes(context: &mut Context) -> Outcome<Vec<String>> {
    let Snapshot { nodes, remote, .. } = take_snapshot(context)?;
    let nodes = nodes.into_iter().map(|node| node.meta.name);
    Ok(nodes.chain(remote.into_iter().map(|node| node.node)).collect())
}

fn keys(context: &mut Context) -> Outcome<Vec<String>> {
    state::keys(context)
}
