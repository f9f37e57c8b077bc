//! The command line with its examples, which each command's help ends in.

use clap::{Command, CommandFactory};

use crate::args::Cli;

/// What the help of `rnet` itself ends in.
const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failed, 2 usage, 124 timed out, 130 interrupted.";

/// Commands with what to type, a line each.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("topic list", &["rnet topic list", "rnet topic list --show-types --verbose"]),
    ("topic info", &["rnet topic info /scan", "rnet topic info /scan --verbose"]),
    ("topic type", &["rnet topic type /scan", "rnet topic type /scan --json"]),
    ("topic find", &["rnet topic find LaserScan", "rnet topic find raw"]),
    (
        "topic echo",
        &[
            "rnet topic echo /scan --once",
            "rnet topic echo /odom --field pose.position.x --csv > x.csv",
        ],
    ),
    ("topic hz", &["rnet topic hz /scan", "rnet topic hz /imu --window 1000 --count 3"]),
    ("topic bw", &["rnet topic bw /camera", "rnet topic bw /camera --timeout 10"]),
    ("topic delay", &["rnet topic delay /imu", "rnet topic delay /imu --once"]),
    (
        "topic pub",
        &[
            "rnet topic pub --once /cmd_vel Twist '{linear: {x: 0.5}}'",
            "rnet topic pub /scan 'frame_id: laser' --rate 10   # of the type of the topic",
            "rnet topic pub --once /imu Imu --file imu.yaml",
            "rnet topic pub --once /note --text hello           # raw bytes",
            "rnet topic pub /gripper/state --text closed --will gone   # what its subscribers get if it is killed",
        ],
    ),
    ("log", &["rnet log --level warning --since 60", "rnet log --follow --node '/arm/**'"]),
    (
        "graph",
        &["rnet graph", "rnet graph --output robot.dot", "rnet graph --format mermaid --over 0"],
    ),
    ("top", &["rnet top", "rnet top --once", "rnet top --once --json | jq .problems"]),
    (
        "trace",
        &[
            "rnet trace /imu",
            "rnet trace --chain /imu,/estimate,/cmd --budget-ms 10",
            "rnet trace /imu --for 10 --svg imu.svg --perfetto imu.json",
        ],
    ),
    (
        "dashboard",
        &[
            "rnet dashboard                   # then open http://127.0.0.1:8420/",
            "rnet dashboard --read-only --port 9000",
            "rnet dashboard --foxglove        # and viewers of the Foxglove protocol at ws://127.0.0.1:8765",
            "rnet dashboard --bind 0.0.0.0 --name robot.local --token-file token --tls-cert cert.pem --tls-key key.pem",
        ],
    ),
    ("status", &["rnet status", "rnet status /controller /imu", "rnet status --json --over 5"]),
    (
        "metrics",
        &["rnet metrics", "rnet metrics --format prometheus > /var/lib/node_exporter/rnet.prom"],
    ),
    (
        "foxglove",
        &[
            "rnet foxglove --allow-origin https://app.foxglove.dev",
            "rnet foxglove run.mcap                             # a recording, which the viewer plays",
            "rnet foxglove --bind 0.0.0.0 --token-file token --tls-cert cert.pem --tls-key key.pem",
        ],
    ),
    ("command list", &["rnet command list", "rnet command list --json"]),
    ("command who", &["rnet command who /cmd_vel", "rnet command who /cmd_vel --json"]),
    (
        "command take",
        &[
            "rnet command take /cmd_vel --priority 100          # the robot stands still",
            "rnet command take /cmd_vel '{linear: {x: 0.2}}' --rate 50 --for 2",
        ],
    ),
    (
        "command release",
        &["rnet command release /cmd_vel", "rnet command release /arm/cmd --priority 50"],
    ),
    ("command log", &["rnet command log /cmd_vel", "rnet command log /cmd_vel --follow --json"]),
    ("service list", &["rnet service list", "rnet service list --show-types"]),
    ("service info", &["rnet service info /plan", "rnet service info /plan --json"]),
    ("service type", &["rnet service type /plan", "rnet service type /plan --json"]),
    (
        "service call",
        &[
            "rnet service call /plan '{goal: {x: 2.0}}'",
            "rnet service call /plan --file goal.yaml --stream --json",
            "rnet service call /upper --text robot    # raw bytes",
        ],
    ),
    ("action list", &["rnet action list", "rnet action list --show-types"]),
    ("action info", &["rnet action info /navigate", "rnet action info /navigate --json"]),
    (
        "action send",
        &[
            "rnet action send /navigate '{x: 2.0}'",
            "rnet action send /navigate --file goal.yaml --timeout 60 --json",
        ],
    ),
    ("action cancel", &["rnet action cancel /navigate", "rnet action cancel /navigate --json"]),
    ("type list", &["rnet type list laser", "rnet type list --in-use"]),
    ("type show", &["rnet type show Imu", "rnet type show --topic /scan"]),
    (
        "type check",
        &[
            "rnet type check old/robot.proto new/robot.proto",
            "rnet type check main/protos protos --direction old-writes",
        ],
    ),
    (
        "type diff",
        &[
            "rnet type diff main/protos protos",
            "rnet type diff old.proto new.proto --type robot.Leg",
        ],
    ),
    (
        "state get",
        &[
            "rnet state get /arm/mode",
            "rnet state get /arm/pid --field kp",
            "rnet state get @robot/arm/mode    # of the host robot",
        ],
    ),
    (
        "state set",
        &[
            "rnet state set /arm/mode idle",
            "rnet state set /arm/pid '{kp: 1.5, ki: 0.1}' --durable",
            "rnet state set /goal --type Pose '{position: {x: 2.0}}'",
            "rnet state set /operator/online true --last-will false",
        ],
    ),
    (
        "state cas",
        &["rnet state cas /leader 0 \"$HOSTNAME\" --ttl 10", "rnet state cas /arm/mode 17 run"],
    ),
    ("state add", &["rnet state add /starts", "rnet state add /arm/offset -0.5"]),
    ("state del", &["rnet state del /arm/mode /arm/gain", "rnet state del /lock --if-revision 9"]),
    ("state flush", &["rnet state flush /tmp", "rnet state flush --yes"]),
    ("state list", &["rnet state list", "rnet state list /arm --long"]),
    (
        "state watch",
        &["rnet state watch /arm", "rnet state watch /battery/low --changes --once --timeout 60"],
    ),
    ("state dump", &["rnet state dump > robot.jsonl", "rnet state dump /arm > arm.jsonl"]),
    ("state load", &["rnet state load robot.jsonl", "rnet state load --replace < robot.jsonl"]),
    ("param list", &["rnet param list", "rnet param list /arm"]),
    ("param get", &["rnet param get /arm pid/gain", "rnet param get /arm/pid/gain --json"]),
    (
        "param set",
        &[
            "rnet param set /arm pid/gain 2.5",
            "rnet param set /arm limits '[0.5, 3.0]'",
            "rnet param set /arm mode run --undeclared   # before the node has ever run",
        ],
    ),
    ("param reset", &["rnet param reset /arm pid/gain", "rnet param reset /arm/mode"]),
    ("param delete", &["rnet param delete /arm pid/gian", "rnet param delete /amr/mode"]),
    ("param describe", &["rnet param describe /arm", "rnet param describe /arm pid/gain"]),
    ("param dump", &["rnet param dump > robot.yaml", "rnet param dump /arm --all"]),
    ("param load", &["rnet param load robot.yaml", "rnet param load - < robot.yaml"]),
    ("node list", &["rnet node list --verbose", "rnet node list --watch"]),
    ("node info", &["rnet node info /arm", "rnet node info @robot/arm --json"]),
    ("node kill", &["rnet node kill /arm", "rnet node kill /arm --domain lab"]),
    ("node stop", &["rnet node stop /arm", "rnet node stop /arm --domain lab"]),
    ("node restart", &["rnet node restart /arm", "rnet node restart /arm --domain lab"]),
    ("node logs", &["rnet node logs /arm --lines 20", "rnet node logs /arm --follow"]),
    (
        "record",
        &[
            "rnet record -o run.mcap",
            "rnet record -o arm.mcap '/arm/**' --exclude '/arm/camera/*' --for 60",
            "rnet record -o day.mcap --split-time 600 --max-disk 100G",
        ],
    ),
    (
        "blackbox run",
        &[
            "rnet blackbox run --trigger '/battery.voltage < 21' --trigger death",
            "rnet blackbox run -t 'log error' -t loss --before 60 --memory 256M -o /var/log/robot",
        ],
    ),
    (
        "blackbox trigger",
        &["rnet blackbox trigger 'it stopped by itself'", "rnet blackbox trigger test --json"],
    ),
    ("blackbox status", &["rnet blackbox status", "rnet blackbox status --json"]),
    ("blackbox list", &["rnet blackbox list", "rnet blackbox list /var/log/robot --json"]),
    ("blackbox recover", &["rnet blackbox recover", "rnet blackbox recover /var/log/robot"]),
    (
        "launch",
        &[
            "rnet launch",
            "rnet launch robot.toml --watch",
            "rnet launch robot.toml --host base --set sim=true",
            "rnet launch robot.toml --check",
        ],
    ),
    (
        "play",
        &[
            "rnet play run.mcap --rate 0.5 --loop",
            "rnet play run.mcap --topic '/camera/**' --remap /camera/image:=/replayed --clock",
            "rnet play run.mcap --start 10 --end 20 --rate max",
        ],
    ),
    (
        "rerun",
        &[
            "rnet rerun run.mcap --node ./controller",
            "rnet rerun run.mcap --tolerance torques=0.01 --ignore header.stamp --node ./controller --gain 2",
            "rnet rerun run.mcap --key time_ns --junit rerun.xml --plot rerun.svg --node python3 controller.py",
        ],
    ),
    ("bag info", &["rnet bag info run.mcap", "rnet bag info run.mcap --json"]),
    ("bag ls", &["rnet bag ls run.mcap", "rnet bag ls run.mcap --json"]),
    (
        "bag cat",
        &[
            "rnet bag cat run.mcap --topic /imu --count 1",
            "rnet bag cat run.mcap --topic '/arm/**' --start 10 --end 12.5 --json",
        ],
    ),
    ("bag check", &["rnet bag check run.mcap", "rnet bag check run.mcap --json"]),
    (
        "bag filter",
        &[
            "rnet bag filter run.mcap --topic '/arm/**' --output arm.mcap",
            "rnet bag filter run.mcap --exclude '/camera/**' --start 10 --end 20 --output short.mcap",
        ],
    ),
    (
        "bag merge",
        &[
            "rnet bag merge left.mcap right.mcap --output both.mcap",
            "rnet bag merge day.mcap day_1.mcap day_2.mcap --output whole.mcap --json",
        ],
    ),
    (
        "bag split",
        &[
            "rnet bag split day.mcap --time 600 --output part.mcap",
            "rnet bag split day.mcap --size 1000000000 --output part.mcap",
        ],
    ),
    (
        "bag convert",
        &[
            "rnet bag convert run.mcap --topic /imu --output imu.csv",
            "rnet bag convert run.mcap --start 10 --output run.jsonl",
            "rnet bag convert run.mcap --ros2 --output ros2.mcap",
        ],
    ),
    (
        "bag plot",
        &[
            "rnet bag plot run.mcap /imu.linear_acceleration.x",
            "rnet bag plot run.mcap /imu.linear_acceleration.x /imu.linear_acceleration.y --output imu.svg",
        ],
    ),
    (
        "bag recover",
        &["rnet bag recover run.mcap", "rnet bag recover run.mcap --output whole.mcap"],
    ),
    ("link run", &["rnet link run", "rnet link run --network lan --host laptop"]),
    ("link start", &["rnet link start", "rnet link start --connect tcp/10.0.0.2:7450"]),
    ("link status", &["rnet link status", "rnet link status --json"]),
    ("domain list", &["rnet domain list", "rnet domain list --json"]),
    ("domain clean", &["rnet domain clean", "rnet domain clean --domain lab"]),
    (
        "doctor",
        &[
            "rnet doctor",
            "rnet doctor /map /lidar    # why /map does not hear /lidar",
            "rnet doctor /map @robot/lidar",
            "rnet doctor --realtime",
        ],
    ),
    (
        "bench throughput",
        &["rnet bench throughput", "rnet bench throughput --size 1M --readers 3 --best-effort"],
    ),
    ("bench latency", &["rnet bench latency", "rnet bench latency --rate 1000 --wait block"]),
    ("bench wait", &["rnet bench wait", "rnet bench wait --rate 1000 --wait spin,adaptive"]),
    ("bench trace", &["rnet bench trace", "rnet bench trace --rate 10000 --wait block"]),
    ("bench rtt", &["rnet bench rtt", "rnet bench rtt --size 64,1M --seconds 2"]),
    (
        "bench topology",
        &[
            "rnet bench topology",
            "rnet bench topology --example > topology.toml",
            "rnet bench topology topology.toml",
        ],
    ),
    ("bench idle", &["rnet bench idle", "rnet bench idle --nodes 50"]),
    ("bench nodes", &["rnet bench nodes", "rnet bench nodes --nodes 100,1000 --processes 50"]),
    ("bench death", &["rnet bench death", "rnet bench death --kills 1000 --limit 100"]),
    (
        "demo",
        &[
            "rnet demo",
            "rnet demo --seconds 60 --domain lab    # look at it: rnet --domain lab topic list",
        ],
    ),
    (
        "completions",
        &[
            "source <(rnet completions bash)      # in ~/.bashrc",
            "source <(rnet completions zsh)       # in ~/.zshrc, after compinit",
            "rnet completions fish > ~/.config/fish/completions/rnet.fish",
        ],
    ),
    ("version", &["rnet version", "rnet version --json"]),
];

/// All commands; a group of commands has the first example of each.
pub fn command() -> Command {
    let command = with_examples(Cli::command(), "").0;
    command.after_help(EXIT_CODES)
}

fn with_examples(command: Command, path: &str) -> (Command, Vec<&'static str>) {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    let own = EXAMPLES.iter().find(|(of, _)| *of == path).map_or(&[][..], |(_, lines)| lines);
    let mut lines = own.to_vec();
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
        assert!(lines.len() >= 2, "{path}: its help needs two examples in help.rs");
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
        for (path, _) in EXAMPLES {
            assert!(seen.contains(&(*path).to_owned()), "there is no command {path}");
        }
        assert_eq!(seen.len(), EXAMPLES.len());
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
