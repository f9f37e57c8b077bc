//! The command line, and the examples at the end of each command's help.

use clap::{Command, CommandFactory};

use crate::args::Cli;

/// The end of the help of `rnet` itself.
const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 124 timed out, 130 interrupted.";

/// Commands, each with the last lines of its help, separated by blank lines.
const EXAMPLES: &str = include_str!("help/examples.txt");

/// The commands of [`EXAMPLES`], each with its lines.
fn examples() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let commands = EXAMPLES.split("\n\n").filter_map(|block| block.split_once('\n'));
    commands.map(|(path, lines)| (path, lines.lines().map(str::trim).collect()))
}

/// All commands; a group of commands has the first example of each.
pub fn command() -> Command {
    let command = with_examples(Cli::command(), "").0;
    command.after_help(EXIT_CODES)
}

fn with_examples(command: Command, path: &str) -> (Command, Vec<&'static str>) {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let own = examples().find(|(of, _)| *of == path);
    let mut lines = own.map_or_else(Vec::new, |(_, lines)| lines);
    let mut command = command;
    for name in names {
        let path = format!("{path} {name}");
        command = command.mut_subcommand(name, |sub| {
            let (sub, examples) = with_examples(sub, path.trim_start());
            lines.extend(examples.first());
            sub
        });
    }
    let text = lines.iter().fold("Examples:".to_owned(), |text, line| format!("{text}\n  {line}"));
    let command = if lines.is_empty() { command } else { command.after_help(text) };
    (command, lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn walk(command: &Command, path: &str, seen: &mut Vec<String>) {
        let all: Vec<&Command> = command.get_subcommands().filter(|c| !c.is_hide_set()).collect();
        for sub in &all {
            walk(sub, format!("{path} {}", sub.get_name()).trim_start(), seen);
        }
        if path.is_empty() {
            return;
        }
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
        assert!(lines.len() >= 2, "{path}: its help needs two examples in help/examples.txt");
        let first = lines[0].strip_prefix("source <(").unwrap_or(lines[0]);
        assert!(format!("{first} ").starts_with(&format!("rnet {path} ")), "{path}: {first}");
        for line in lines {
            let line =
                line.strip_prefix("source <(").map_or(line, |rest| rest.split(')').next().unwrap());
            let words = shlex::split(line).unwrap();
            let words = words.split(|w| w == "|" || w == "<" || w == ">").next().unwrap();
            let parsed = Cli::try_parse_from(words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
        if all.is_empty() {
            seen.push(path.to_owned());
        }
    }

    #[test]
    fn each_command_has_examples_that_parse() {
        let mut seen = Vec::new();
        walk(&command(), "", &mut seen);
        for (path, _) in examples() {
            assert!(seen.contains(&path.to_owned()), "there is no command {path}");
        }
        assert_eq!(seen.len(), examples().count());
    }

    #[test]
    fn options_of_all_commands_stand_apart() {
        let help = command().try_get_matches_from(["rnet", "state", "set", "--help"]).unwrap_err();
        let help = help.to_string();
        let (own, global) = help.split_once("\nGlobal options:\n").unwrap();
        for option in ["--domain", "--dir", "--group", "--json"] {
            assert!(!own.contains(option) && global.contains(option), "{help}");
        }
        assert!(own.contains("--ttl") && !global.contains("--ttl"), "{help}");
    }
}
