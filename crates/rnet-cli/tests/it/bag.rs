//! `rnet bag …`.

use crate::util;

use std::path::PathBuf;

use util::TestEnv;
use util::processes::until;
use util::recording::{START_NS, late_start, mixed, recording};

#[test]
fn info_and_ls_show_what_is_in_a_file() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let info = rnet!(env, "bag", "info", file).ok();
    for part in [
        "Profile:     rnet, written by robot-net ",
        "Duration:    1.000 s\n",
        "Messages:    11\n",
        "Losses:      unknown: the recording was not finished\n",
        "TOPIC      TYPE  MESSAGES   HZ  NODE\n/arm/pose  Pose        10  9.0  /arm\n/raw       raw          1    -",
    ] {
        assert!(info.contains(part), "{part:?} is missing:\n{info}");
    }
    let json = rnet!(env, "bag", "info", file, "--json").json();
    assert_eq!((&json["messages"], &json["by_index"]), (&11.into(), &true.into()));
    assert_eq!(json["topics"][0]["nodes"], serde_json::json!(["/arm"]));
    let listed = rnet!(env, "bag", "ls", file).ok();
    let line = "/arm/pose  Pose  /arm        10  9.0   80 B        1\n";
    assert!(listed.contains(line), "{listed}");
    let json = rnet!(env, "bag", "ls", file, "--json").json();
    assert_eq!(json["channels"][0]["missing"], 1);
    assert_eq!(json["channels"][1]["bytes"], 5);
}

#[test]
fn info_and_ls_show_the_same_rate_of_a_topic() {
    let env = TestEnv::new();
    let file = late_start(&env, "run.mcap");
    let scanned = env.dir.join("cut.mcap");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&scanned, &whole[..whole.len() - 40]).unwrap();
    for file in [&file, &scanned] {
        let file = file.to_str().unwrap();
        // Of column HZ.
        let hz = |command: &str, topic: &str| {
            let text = rnet!(env, "bag", command, file).ok();
            let titles = text.lines().find(|line| line.starts_with("TOPIC")).unwrap().to_owned();
            let end = titles.find("HZ").unwrap() + 2;
            let row = text.lines().find(|line| line.starts_with(topic)).unwrap();
            row[..end].split_whitespace().last().unwrap().to_owned()
        };
        for (topic, expected) in [("/late", "100.0"), ("/slow", "0.5"), ("/once", "-")] {
            for command in ["info", "ls"] {
                assert_eq!(hz(command, topic), expected, "{command} {topic} {file}");
            }
        }
    }
}

#[test]
fn cat_prints_messages_as_echo_does() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let text = rnet!(env, "bag", "cat", file, "--topic", "/arm/*", "--start", "0.95").ok();
    assert_eq!(text, "# /arm/pose 10 at 1.000000 s, from /arm, 8 bytes\nx: 10.0\n---\n");
    let lines = rnet!(env, "bag", "cat", file, "--json", "--start", "0.2", "--end", "0.55");
    let lines = lines.json_lines();
    let x: Vec<f64> = lines.iter().map(|line| line["data"]["x"].as_f64().unwrap()).collect();
    assert_eq!(x, [2.0, 3.0, 5.0]);
    assert_eq!(lines[0]["publisher"], "7");
    assert_eq!(lines[0]["received_ns"], START_NS + 200_000_000);
    let raw = rnet!(env, "bag", "cat", file, "--topic", "/raw", "--json").json_lines();
    assert_eq!(raw[0]["hex"], "68656c6c6f");
    assert_eq!(rnet!(env, "bag", "cat", file, "--count", "2", "--json").json_lines().len(), 2);
    let wrong = rnet!(env, "bag", "cat", file, "--topic", "/arm/pos").fails(1);
    assert!(
        wrong.contains("topic /arm/pos not found in ") && wrong.contains("/arm/pose"),
        "{wrong}"
    );
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_goes_checked_and_recovered() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let path = file.to_str().unwrap();
    assert_eq!(
        rnet!(env, "bag", "check", path).ok(),
        "11 messages, 3 chunks; 1 sent messages are missing\n"
    );
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
    let ran = rnet!(env, "bag", "info", path);
    assert!(ran.stderr.contains("was read completely: it has no end"), "{ran:#?}");
    assert!(ran.ok().contains("Messages:    "));
    let failed = rnet!(env, "bag", "cat", path, "--json");
    let there = failed.json_lines().len();
    assert!((1..11).contains(&there), "{failed:#?}");
    // The file could also be a recording in progress.
    assert!(failed.stderr.contains("the file ends"), "{failed:#?}");
    failed.ok();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 6] ^= 1;
    flipped.truncate(bytes.len() / 3);
    let other = env.dir.join("flipped.mcap");
    std::fs::write(&other, flipped).unwrap();
    let failed = rnet!(env, "bag", "cat", other.to_str().unwrap());
    assert!(failed.fails(1).contains("is damaged"));
    assert!(rnet!(env, "bag", "check", path).fails(1).contains("at byte "));
    let ran = rnet!(env, "bag", "recover", path);
    let whole = env.dir.join("run.recovered.mcap");
    assert!(ran.ok().starts_with(&format!("{}: {there} messages, ", whole.display())));
    let whole = whole.to_str().unwrap();
    let checked = rnet!(env, "bag", "check", whole).ok();
    assert!(checked.starts_with(&format!("{there} messages, ")), "{checked}");
    assert!(rnet!(env, "bag", "info", whole).ok().contains("Recovered:   from "));
    // An existing file is not overwritten.
    assert!(rnet!(env, "bag", "recover", path).fails(1).contains("File exists"));
    for wrong in ["/dev/null", "/", "none.mcap"] {
        rnet!(env, "bag", "info", wrong).fails(1);
    }
}

/// A file without an end may still be in progress, and all its contents are intact.
#[test]
fn file_without_an_end_reports_no_omitted_messages() {
    let env = TestEnv::new();
    let path = |name: &str| env.dir.join(name).to_str().unwrap().to_owned();
    let file = recording(&env, "run.mcap");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 3]).unwrap();
    let file = file.to_str().unwrap();
    let whole = rnet!(env, "bag", "info", file, "--json").json()["messages"].clone();
    let topic = ["--topic", "/arm/pose"];
    let made = |command: &str, more: &[&str]| {
        let args = [&["bag", command, file, "--json"], more].concat();
        let ran = env.run(&args);
        assert!(ran.stderr.contains("the file ends"), "{ran:?}");
        ran.json()
    };
    assert_eq!(made("ls", &[])["channels"][0]["messages"], whole);
    assert_eq!(made("convert", &[&topic[..], &["-o", &path("a.csv")]].concat())["messages"], whole);
    let plotted = made("plot", &["/arm/pose.x", "-o", &path("a.svg")]);
    assert_eq!((&plotted["lines"][0]["points"], &plotted["file"]), (&whole, &path("a.svg").into()));
    for (command, more) in [("filter", &[][..]), ("merge", &[]), ("split", &["--time", "60"])] {
        let to = path(&format!("{command}.mcap"));
        let made = made(command, &[more, &["-o", &to]].concat());
        assert_eq!(made["files"][0]["messages"], whole);
    }
}

#[test]
fn a_recording_without_messages_is_split_into_one() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let path = |name: &str| env.dir.join(name).to_str().unwrap().to_owned();
    let (none, part) = (path("none.mcap"), path("part.mcap"));
    rnet!(env, "bag", "filter", file.to_str().unwrap(), "--start", "60", "-o", none).ok();
    let made = rnet!(env, "bag", "split", none, "--time", "1", "-o", part, "--json").json();
    assert_eq!(
        (&made["files"][0]["file"], &made["files"][0]["messages"]),
        (&part.clone().into(), &0.into())
    );
    assert!(rnet!(env, "bag", "check", part).ok().starts_with("0 messages"));
}

/// A file that takes seconds to read: a header, and millions of unknown records.
#[test]
fn first_ctrl_c_ends_a_reading_command() {
    let env = TestEnv::new();
    let mut bytes = b"\x89MCAP0\r\n".to_vec();
    bytes.extend([1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0x81, 0, 0, 0, 0, 0, 0, 0, 0].repeat(8_000_000));
    let file = env.dir.join("long.mcap");
    std::fs::write(&file, bytes).unwrap();
    for command in ["info", "check", "recover"] {
        let running = env.spawn(&["bag", command, file.to_str().unwrap()]);
        let fds = PathBuf::from(format!("/proc/{}/fd", running.pid()));
        until("the file is open", || {
            let mut fds = fds.read_dir().unwrap().flatten();
            fds.any(|fd| fd.path().read_link().is_ok_and(|to| to == file))
        });
        running.signal("INT");
        running.wait().fails(130);
    }
    assert!(!env.dir.join("long.recovered.mcap").exists());
}

#[test]
fn filter_and_merge_create_new_files() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let path = |name: &str| env.dir.join(name).to_str().unwrap().to_owned();
    let (arm, parts, whole) = (path("arm.mcap"), path("part.mcap"), path("whole.mcap"));
    let made = rnet!(env, "bag", "filter", file, "--exclude", "/raw", "--start", "0.5", "-o", arm);
    assert!(made.ok().starts_with(&format!("{arm}: 6 messages, ")));
    rnet!(env, "bag", "filter", file, "--topic", "/none", "--output", path("none.mcap")).fails(1);
    let none = path("none.mcap");
    let refused = rnet!(env, "bag", "filter", file, "--remap", "/rax:=/x", "-o", none).fails(1);
    assert!(refused.contains("topic /rax not found in ") && refused.contains("/raw"), "{refused}");
    let refused = rnet!(env, "bag", "filter", file, "--remap", "/raw:=/a b", "-o", none).fails(2);
    assert!(refused.contains("/a b"), "{refused}");
    // Another recorder's topic may have an invalid name.
    let refused = rnet!(env, "bag", "filter", file, "--remap", "a-b:=/x", "-o", none).fails(1);
    assert!(refused.contains("topic a-b not found"), "{refused}");
    let refused = rnet!(env, "bag", "cat", file, "--end", "0").fails(2);
    assert!(refused.contains("--end 0 must be greater than --start 0"), "{refused}");
    let refused = rnet!(env, "bag", "cat", file, "--end=-1").fails(2);
    assert!(refused.contains("a number of seconds from 0"), "{refused}");
    let refused = rnet!(env, "bag", "split", file, "--size", "0", "-o", none).fails(2);
    assert!(refused.contains("above 0"), "{refused}");
    let refused = rnet!(env, "bag", "cat", file, "--start", "0.7", "--end", "0.5").fails(2);
    assert!(refused.contains("--end 0.5 must be greater than --start 0.7"), "{refused}");
    assert!(!rnet!(env, "bag", "cat", file, "-x", "/raw").ok().contains("/raw"));
    rnet!(env, "bag", "filter", file, "--output", arm).fails(1);
    let made = rnet!(env, "bag", "split", file, "--time", "0.5", "--output", parts, "--json");
    let made = made.json();
    let messages = |at: usize| made["files"][at]["messages"].as_u64().unwrap();
    assert_eq!([messages(0), messages(1), messages(2)], [4, 5, 2]);
    let (first, second, third) = (parts, path("part_1.mcap"), path("part_2.mcap"));
    rnet!(env, "bag", "merge", third, first, second, "--output", whole).ok();
    let read = |file: &str| rnet!(env, "bag", "cat", file).ok();
    assert_eq!(read(&whole), read(file));
    rnet!(env, "bag", "split", file, "--output", path("x.mcap")).fails(2);
    let made =
        rnet!(env, "bag", "split", file, "--size", "1M", "--output", path("one.mcap"), "--json");
    assert_eq!(made.json()["files"][0]["messages"], 11);
    assert!(rnet!(env, "bag", "check", whole).ok().starts_with("11 messages"));
}

#[test]
fn messages_convert_to_csv_and_json_lines() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let (csv, raw, lines) = (env.dir.join("a.csv"), env.dir.join("b.csv"), env.dir.join("c.jsonl"));
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    rnet!(env, "bag", "convert", file, "--topic", "/arm/pose", "--end", "0.15", "-o", path(&csv))
        .ok();
    let second = START_NS + 100_000_000;
    assert_eq!(
        std::fs::read_to_string(&csv).unwrap(),
        format!(
            "received_ns,sent_ns,node,seq,x\n{START_NS},{START_NS},/arm,0,0.0\n{second},{second},/arm,1,1.0\n"
        )
    );
    rnet!(env, "bag", "convert", file, "--topic", "/raw", "-o", path(&raw)).ok();
    assert!(std::fs::read_to_string(&raw).unwrap().ends_with(",0,68656c6c6f\n"));
    rnet!(env, "bag", "convert", file, "--output", path(&lines)).ok();
    let text = std::fs::read_to_string(&lines).unwrap();
    assert_eq!(text, rnet!(env, "bag", "cat", file, "--json").ok());
    let refused = rnet!(env, "bag", "convert", file, "--output", "all.csv").fails(2);
    assert!(refused.contains("a CSV table holds one topic"), "{refused}");
    rnet!(env, "bag", "convert", file, "--output", "run.xyz").fails(2);
}

/// A table has the fields of all versions of a type. For a list of messages it has all fields, zero or not.
#[test]
fn table_has_the_fields_of_all_versions_and_names_omissions() {
    let env = TestEnv::new();
    let file = util::recording::grips(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let path = |name: &str| env.dir.join(name).to_str().unwrap().to_owned();
    let why = rnet!(env, "bag", "convert", file, "-o", path("a.csv")).fails(1);
    let said = "message 1 of /old on /grip was omitted: ";
    assert!(why.contains(said) && why.contains("UTF-8"), "{why}");
    let times = |n: u64| format!("{0},{0}", START_NS + n);
    let expected = format!(
        "received_ns,sent_ns,node,seq,name,width,fingers,temp\n\
         {},/old,0,a,0.1,\"[{{\"\"angle\"\":0.0}},{{\"\"angle\"\":1.5}}]\",\n\
         {},/new,2,b,0.2,[],40.0\n",
        times(0),
        times(2)
    );
    assert_eq!(std::fs::read_to_string(path("a.csv")).unwrap(), expected);
    // With selected fields.
    let of = |name: &str, fields: &[&str]| {
        let to = path(name);
        let mut args = vec!["bag", "convert", file, "-o", &to];
        fields.iter().for_each(|field| args.extend(["--field", *field]));
        env.run(&args)
    };
    of("b.csv", &["width", "temp"]).fails(1);
    let expected = format!(
        "received_ns,sent_ns,node,seq,width,temp\n{},/old,0,0.1,\n{},/new,2,0.2,40.0\n",
        times(0),
        times(2)
    );
    assert_eq!(std::fs::read_to_string(path("b.csv")).unwrap(), expected);
    for name in ["c.csv", "c.jsonl"] {
        let none = of(name, &["width", "tmep"]).fails(1);
        assert!(none.contains("no such field") && none.contains("temp"), "{none}");
        assert!(!env.dir.join(name).exists());
    }
    of("d.jsonl", &["temp"]).ok();
    let lines = std::fs::read_to_string(path("d.jsonl")).unwrap();
    let data: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["data"].clone())
        .collect();
    assert_eq!(
        (&data[0], &data[2]),
        (&serde_json::json!({"temp": null}), &serde_json::json!({"temp": 40.0}))
    );
    let plotted = rnet!(env, "bag", "plot", file, "/grip.temp", "--json");
    assert!(
        plotted.stdout.contains("\"max\": 40.0") || plotted.stdout.contains("\"max\":40.0"),
        "{plotted:?}"
    );
}

#[test]
fn topics_with_foreign_names_are_selected_by_name() {
    let env = TestEnv::new();
    let names = ["camera", "/my topic", "/größe/x", "/1st", "/ok"];
    let file = util::recording::topics(&env, "run.mcap", &names);
    let file = file.to_str().unwrap();
    let chosen = |pattern: &str, option: &str| {
        let cat = rnet!(env, "bag", "cat", file, option, pattern, "--json");
        let topics =
            cat.json_lines().into_iter().map(|line| line["topic"].as_str().unwrap().to_owned());
        topics.collect::<Vec<String>>()
    };
    for name in names {
        assert_eq!(chosen(name, "--topic"), [name]);
        assert_eq!(chosen(name, "--exclude").len(), names.len() - 1, "{name}");
    }
    assert_eq!(chosen("/camera", "--topic"), ["camera"]);
    assert_eq!(chosen("/größe/*", "--topic"), ["/größe/x"]);
    assert_eq!(chosen("/**", "--topic").len(), names.len());
    rnet!(env, "bag", "cat", file, "--topic", "/cam*").fails(2);
}

/// Lists and unset fields, and their conversion for ROS 2.
#[test]
fn protobuf_messages_convert_to_rows_and_ros_2_messages() {
    let env = TestEnv::new();
    let file = util::recording::joints(&env, "joints.mcap");
    let to = env.dir.join("joints.csv").to_str().unwrap().to_owned();
    rnet!(env, "bag", "convert", file.to_str().unwrap(), "-o", to).ok();
    let rows = std::fs::read_to_string(&to).unwrap();
    assert!(rows.contains("\"[\"\"a\"\",\"\"b\"\"]\",\"[1.5,2.5]\",[],"), "{rows}");
    // The messages that ROS 2 can read, and those without a counterpart.
    let to = env.dir.join("ros2.mcap").to_str().unwrap().to_owned();
    rnet!(env, "bag", "convert", file.to_str().unwrap(), "--ros2", "-o", to).ok();
    let info = rnet!(env, "bag", "info", to).ok();
    assert!(
        info.contains("Profile:     ros2") && info.contains("sensor_msgs/msg/JointState"),
        "{info}"
    );
    let cat = rnet!(env, "bag", "cat", to, "--json").ok();
    assert!(
        cat.contains("\"name\":[\"a\",\"b\"]") && cat.contains("\"position\":[1.5,2.5]"),
        "{cat}"
    );
    let again = env.dir.join("again.csv").to_str().unwrap().to_owned();
    rnet!(env, "bag", "convert", to, "-o", again).ok();
    let csv = std::fs::read_to_string(again).unwrap();
    assert!(csv.starts_with("received_ns,sent_ns,node,seq,header.stamp.sec,"), "{csv}");
    let plain = recording(&env, "run.mcap");
    let none = env.dir.join("none.mcap").to_str().unwrap().to_owned();
    let ran = rnet!(env, "bag", "convert", plain.to_str().unwrap(), "--ros2", "-o", none);
    assert!(
        ran.stderr.contains("10 messages of /arm/pose were omitted: ROS 2 has no Pose"),
        "{ran:#?}"
    );
}

#[test]
fn plots_are_drawn_in_the_terminal_and_as_pictures() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let drawn = rnet!(env, "bag", "plot", file, "/arm/pose.x").ok();
    let rows: Vec<&str> = drawn.lines().collect();
    assert_eq!((rows[0], rows.len()), ("/arm/pose.x", 15), "{drawn}");
    // x grows with time: its last dots are at the top, its first ones at the bottom.
    assert!(rows[1].starts_with("10 │") && rows[1].chars().count() > 70, "{drawn}");
    assert!(rows[12].starts_with(" 0 │") && rows[12].chars().count() < 15, "{drawn}");
    assert!(rows[14].contains("0 s") && rows[14].ends_with("1 s"), "{drawn}");
    let json = rnet!(env, "bag", "plot", file, "/arm/pose.x", "--start", "0.15", "--json").json();
    let line = &json["lines"][0];
    assert_eq!(
        (&line["points"], &line["min"], &line["max"]),
        (&8.into(), &2.0.into(), &10.0.into())
    );

    let svg = env.dir.join("a.svg");
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let plot = |to: &str| {
        let to = env.dir.join(to);
        rnet!(env, "bag", "plot", file, "/arm/pose.x", "/arm/pose.x", "-o", path(&to))
    };
    plot("a.svg").ok();
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(text.starts_with("<svg") && text.contains("/arm/pose.x"), "{text}");
    assert_eq!(text.matches("<polyline").count(), 2, "{text}");
    let there = plot("a.svg").fails(1);
    assert!(there.contains("exists"), "{there}");
    let other = plot("a.png").fails(2);
    assert!(other.contains("ends in .svg"), "{other}");

    for (field, words) in [
        ("/arm/pose.y", "Pose has x"),
        ("/arm/pose", "select a field of /arm/pose: it has x"),
        ("/arm/pos.x", "topic /arm/pos not found"),
        ("/raw", "/raw has raw bytes, without fields"),
        ("/raw.x", "fields can be read only from protobuf and plain messages"),
    ] {
        let said = rnet!(env, "bag", "plot", file, field).fails(1);
        assert!(said.contains(words), "{field}: {said}");
    }
    rnet!(env, "bag", "plot", file, "/arm/pose.x", "-o", "plot.xyz").fails(2);
}

#[test]
fn partially_written_table_is_removed() {
    let env = TestEnv::new();
    let file = mixed(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let into = env.dir.join("out");
    std::fs::create_dir(&into).unwrap();
    let to = into.join("a.csv");
    let to = to.to_str().unwrap();
    let why = rnet!(env, "bag", "convert", file, "--field", "z", "-o", to).fails(1);
    assert!(why.contains("unknown field z"), "{why}");
    assert_eq!(into.read_dir().unwrap().count(), 0);
    // Two versions of one type share a table.
    rnet!(env, "bag", "convert", file, "-o", to).ok();
    let table = std::fs::read_to_string(to).unwrap();
    let rows: Vec<&str> = table.lines().map(|line| line.splitn(5, ',').last().unwrap()).collect();
    assert_eq!(rows, ["x,y", "1.0,", ",1.0"], "{table}");
    std::fs::remove_file(to).unwrap();
    let lines = into.join("a.jsonl");
    let lines = lines.to_str().unwrap();
    rnet!(env, "bag", "convert", file, "-o", lines).ok();
    assert!(rnet!(env, "bag", "convert", file, "-o", lines).fails(1).contains("File exists"));
    assert_eq!(into.read_dir().unwrap().count(), 1);
}

#[test]
fn merging_a_file_with_itself_reports_duplicates() {
    let env = TestEnv::new();
    let file = recording(&env, "run.mcap");
    let file = file.to_str().unwrap();
    let to = env.dir.join("merged.mcap");
    let to = to.to_str().unwrap();
    let said = rnet!(env, "bag", "merge", file, file, "-o", to).ok();
    assert!(said.contains("; 10 duplicates were removed"), "{said}");
}

#[test]
fn info_of_a_merged_file_sums_the_losses() {
    let env = TestEnv::new();
    let options = rnet_record::mcap::WriteOptions::new().profile(rnet_record::names::PROFILE);
    let mut writer = options.create(std::io::Cursor::new(Vec::new())).unwrap();
    let mut say = |name: &str, pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let metadata = pairs.collect();
        let record = rnet_record::mcap::records::Metadata { name: name.to_owned(), metadata };
        writer.write_metadata(&record).unwrap();
    };
    for (lost, unheard, followed) in [("2", "0", "3"), ("5", "1", "4")] {
        say(rnet_record::names::LOSSES, &[("total", lost), ("/raw /n disk_full", lost)]);
        let pairs = [("total", unheard), ("/scan /n closed", unheard), ("followed", followed)];
        say(rnet_record::names::UNHEARD, &pairs);
    }
    writer.finish().unwrap();
    let file = env.dir.join("a.mcap");
    std::fs::write(&file, writer.into_inner().into_inner()).unwrap();
    let said = rnet!(env, "bag", "info", file.to_str().unwrap()).ok();
    for line in [
        "Losses:      7 from the 4 publishers followed\n",
        "             7 /raw /n disk_full\n",
        "Not heard:   1 of the publishers /scan /n closed\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
}
