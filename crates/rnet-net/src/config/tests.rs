//! Each setting: which values are accepted, and the errors for the others.

mod beside;
mod insecure;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use rnet_config::invalid_host_reason;

use super::*;

fn parsed(text: &str) -> Result<Config, ConfigError> {
    Config::from_toml(text, Path::new("robot.toml"))
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = parsed(text).expect_err(text).to_string();
    assert_eq!(error, expected, "{text}");
}

/// A configuration of these flags and this environment.
fn loaded(overrides: &Overrides, env: &[(&str, &OsStr)]) -> Result<Config, ConfigError> {
    let env: HashMap<&str, OsString> =
        env.iter().map(|(name, value)| (*name, value.to_os_string())).collect();
    merge::load(overrides, &|name| env.get(name).cloned())
}

/// A directory of the test, removed with it.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("rnet-config-{}-{n}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        Dir(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file of the test, removed with its directory.
fn file(bytes: &[u8]) -> (Dir, PathBuf) {
    let dir = Dir::new();
    let path = dir.0.join("robot.toml");
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

const WHOLE: &str = r#"
[network]
mode = "peers"
host = "robot-1"
listen = ["tcp/0.0.0.0:7450", "tcp/[fe80::1%eth0]:7450"]
connect = ["tcp/10.0.0.2:7450", "tcp/laptop.local:7450"]
lost_after_ms = 2000

[[network.rule]]
topic = "/camera/front"
direction = "out"
allow = true

[[network.rule]]
topic = "/camera/**"
direction = "out"
host = "laptop"
allow = false

[[network.rule]]
topic = "/cmd_vel"
direction = "in"
allow = false

[[network.topic]]
topic = "/camera/*/image"
rate_limit_hz = 10
newest_only = true
every = 3
compression = "lz4"
resend_limit_bytes = 0

[[network.topic]]
topic = "/**"
rate_limit_hz = 0.5
"#;

#[test]
fn every_key_is_accepted() {
    let config = parsed(WHOLE).unwrap();
    assert_eq!(config.mode, Mode::Peers);
    assert_eq!(config.mode_source.to_string(), "robot.toml:3");
    assert_eq!(config.host, "robot-1");
    assert_eq!(config.lost_after, Duration::from_secs(2));
    assert_eq!(config.file.as_deref(), Some(Path::new("robot.toml")));
    let texts = |list: &[Endpoint]| list.iter().map(Endpoint::to_string).collect::<Vec<_>>();
    let listen = texts(&WithSource::values(&config.listen));
    assert_eq!(listen, ["tcp/0.0.0.0:7450", "tcp/[fe80::1%eth0]:7450"]);
    assert_eq!(config.listen[1].source, "robot.toml:5:31: network.listen");
    assert_eq!(texts(&config.connect), ["tcp/10.0.0.2:7450", "tcp/laptop.local:7450"]);
    assert_eq!((config.connect[1].host(), config.connect[1].port()), ("laptop.local", 7450));
    let image = config.shaping("/camera/left/image");
    let all = Shaping {
        rate_limit_hz: Some(10.0),
        newest_only: true,
        every: NonZeroU32::new(3).unwrap(),
        compression: Compression::Lz4,
        resend_limit_bytes: 0,
    };
    assert_eq!(image, all);
    let rest = Shaping { rate_limit_hz: Some(0.5), ..Shaping::default() };
    assert_eq!(config.shaping("/imu"), rest);
    assert_eq!((config.rules.len(), config.topics.len()), (3, 2));

    let lan = parsed("[network]\nmode = \"lan\"\ninterfaces = [\"eth0\", \"wlan0\"]").unwrap();
    assert_eq!(
        (lan.mode, WithSource::values(&lan.interfaces)),
        (Mode::Lan, vec!["eth0".into(), "wlan0".into()])
    );
    assert_eq!(lan.interfaces[1].source, "robot.toml:3:23: network.interfaces");
    assert_eq!(lan.topics.len(), 0);
}

#[test]
fn network_may_be_a_string_and_defaults_to_off() {
    for (text, mode, from) in [
        ("", Mode::Off, "default"),
        ("network = \"off\"", Mode::Off, "robot.toml:1"),
        ("\nnetwork = \"lan\"", Mode::Lan, "robot.toml:2"),
        ("[network]", Mode::Off, "default"),
        ("[network]\nhost = \"a\"", Mode::Off, "default"),
        // Endpoints imply a network unless the mode is set.
        ("[network]\nconnect = [\"tcp/a:1\"]", Mode::Peers, "listen or connect endpoints are set"),
        ("[network]\nmode = \"off\"\nlisten = [\"tcp/a:1\"]", Mode::Off, "robot.toml:2"),
    ] {
        let config = parsed(text).unwrap();
        assert_eq!((config.mode, config.mode_source.to_string().as_str()), (mode, from), "{text}");
    }
}

#[test]
fn first_matching_rule_decides() {
    let config = parsed(WHOLE).unwrap();
    for (topic, direction, host, line) in [
        ("/camera/front", Direction::Out, "laptop", None),
        ("/camera/rear", Direction::Out, "laptop", Some(14)),
        ("/camera/rear", Direction::Out, "robot-2", None),
        ("/camera/rear", Direction::In, "laptop", None),
        ("/cmd_vel", Direction::In, "laptop", Some(20)),
        ("/cmd_vel", Direction::Out, "laptop", None),
        ("/imu", Direction::Out, "laptop", None),
    ] {
        let verdict = config.allows(topic, direction, host);
        let found = verdict.err().map(|rule| rule.place.as_ref().unwrap().line);
        assert_eq!(found, line, "{topic} {direction} {host}");
    }
    let rule = config.allows("/cmd_vel", Direction::In, "laptop").unwrap_err();
    assert_eq!(rule.to_string(), "the rule \"/cmd_vel\" (robot.toml:20)");
}

#[test]
fn local_only_topics_stay_on_their_host_whatever_the_rules() {
    let all = "[[network.rule]]\ntopic = \"/**\"\nallow = true";
    let config = parsed(all).unwrap();
    for direction in [Direction::In, Direction::Out] {
        let rule = config.allows("/_rnet/link", direction, "laptop").unwrap_err();
        assert_eq!(rule.to_string(), "the rule that /_rnet/link stays on its host");
    }
    assert!(config.allows("/_rnet/logs", Direction::Out, "laptop").is_ok());
}

#[test]
fn topics_without_a_matching_rule_are_allowed() {
    let config = parsed("").unwrap();
    assert!(config.allows("/cmd_vel", Direction::In, "anybody").is_ok());
    assert_eq!(config.shaping("/cmd_vel"), Shaping::default());
}

#[test]
fn unknown_key_is_reported_with_a_suggestion() {
    refused(
        "[netwrok]\nmode = \"lan\"",
        "robot.toml:1:2: netwrok: unknown key; expected \"network\", \"include\", \"var\", \"node\" or \"blackbox\"; did you mean \
         \"network\"?",
    );
    refused(
        "[network]\nmode = \"lan\"\n  lisen = []",
        "robot.toml:3:3: network.lisen: unknown key; expected \"mode\", \"host\", \
         \"interfaces\", \"listen\", \"connect\", \"lost_after_ms\", \"insecure\", \"keys\", \"rule\" or \"topic\"; did you mean \"listen\"?",
    );
    refused(
        "[[network.rule]]\ntopic = \"/a\"\nallow = true\nhots = \"b\"",
        "robot.toml:4:1: network.rule.hots: unknown key; expected \"topic\", \
         \"direction\", \"host\" or \"allow\"; did you mean \"host\"?",
    );
    refused(
        "[[network.topic]]\ntopic = \"/a\"\nzzz = 1",
        "robot.toml:3:1: network.topic.zzz: unknown key; expected \"topic\", \
         \"rate_limit_hz\", \"newest_only\", \"every\", \"compression\" or \"resend_limit_bytes\"",
    );
    // The first of several errors is reported.
    let error = parsed("[network]\nzz = 1\naa = 1").unwrap_err().to_string();
    assert!(error.starts_with("robot.toml:2:1: network.zz:"), "{error}");
}

#[test]
fn missing_key_is_reported() {
    refused(
        "\n[[network.rule]]\nallow = true",
        "robot.toml:2:1: network.rule.topic is missing; expected a topic pattern",
    );
    refused(
        "[[network.rule]]\ntopic = \"/a\"",
        "robot.toml:1:1: network.rule.allow is missing; expected true or false",
    );
    refused(
        "[[network.topic]]\nevery = 2",
        "robot.toml:1:1: network.topic.topic is missing; expected a topic pattern",
    );
}

#[test]
fn value_of_wrong_type_is_reported_with_expected_type() {
    let modes = "\"off\", \"lan\" or \"peers\"";
    let silence = "a whole number of milliseconds, 300 to 60000";
    let rate = "messages per second, 0.00001 to 1000000";
    let count = "a whole number, 1 to 4294967295";
    let resend = "a whole number of bytes, 0 to 268435456";
    let interface = "a network interface name";
    let rules = "[[network.rule]] in double brackets, one per rule";
    let topics = "[[network.topic]] in double brackets, one per entry";
    for (key, value, expected, found) in [
        ("network", "3", "a table, or \"off\" or \"lan\"", "3"),
        ("network", "\"of\"", modes, "\"of\"; did you mean \"off\"?"),
        ("network.mode", "\"LAN\"", modes, "\"LAN\"; did you mean \"lan\"?"),
        ("network.mode", "\"wan\"", modes, "\"wan\"; did you mean \"lan\"?"),
        ("network.mode", "\"internet\"", modes, "\"internet\""),
        ("network.mode", "true", modes, "true"),
        ("network.host", "1.5", "a host name", "1.5"),
        (
            "network.host",
            "\"a b\"",
            "a name of 1 to 64 letters, digits, '-', '.' and '_'",
            "\"a b\"",
        ),
        ("network.interfaces", "\"eth0\"", "an array, such as [\"…\", \"…\"]", "\"eth0\""),
        ("network.interfaces", "[1]", &format!("{interface}, such as \"eth0\""), "1"),
        (
            "network.interfaces",
            "[\"a/b\"]",
            &format!("{interface} of at most 15 characters"),
            "\"a/b\"",
        ),
        ("network.listen", "{ a = 1 }", "an array, such as [\"…\", \"…\"]", "a table"),
        ("network.connect", "[[]]", endpoint::ENDPOINT_FORMAT, "an empty array"),
        ("network.lost_after_ms", "1.5", silence, "1.5"),
        ("network.lost_after_ms", "100", silence, "100"),
        ("network.lost_after_ms", "\"1 s\"", silence, "\"1 s\""),
        ("network.lost_after_ms", "60001", silence, "60001"),
        ("network.rule", "[1]", rules, "1"),
        // Read like `[network.rule]`, with single brackets.
        ("network.rule", "{ topic = \"/a\", allow = true }", rules, "a table"),
        ("network.topic", "[2020-01-01]", topics, "2020-01-01"),
        ("network.topic", "[{ topic = \"/a\", rate_limit_hz = 0 }]", rate, "0"),
        ("network.topic", "[{ topic = \"/a\", rate_limit_hz = nan }]", rate, "nan"),
        ("network.topic", "[{ topic = \"/a\", rate_limit_hz = inf }]", rate, "inf"),
        ("network.topic", "[{ topic = \"/a\", rate_limit_hz = -1.0 }]", rate, "-1.0"),
        ("network.topic", "[{ topic = \"/a\", rate_limit_hz = \"9\" }]", rate, "\"9\""),
        ("network.topic", "[{ topic = \"/a\", every = 0 }]", count, "0"),
        ("network.topic", "[{ topic = \"/a\", every = 1.5 }]", count, "1.5"),
        ("network.topic", "[{ topic = \"/a\", every = 4294967296 }]", count, "4294967296"),
        ("network.topic", "[{ topic = \"/a\", newest_only = 1 }]", "true or false", "1"),
        ("network.topic", "[{ topic = \"/a\", resend_limit_bytes = -1 }]", resend, "-1"),
        (
            "network.topic",
            "[{ topic = \"/a\", compression = \"lz\" }]",
            "\"none\" or \"lz4\"",
            "\"lz\"; did you mean \"lz4\"?",
        ),
        (
            "network.rule",
            "[{ topic = \"/a\", allow = true, direction = \"uot\" }]",
            "\"in\", \"out\" or \"both\"",
            "\"uot\"; did you mean \"out\"?",
        ),
        ("network.rule", "[{ topic = \"/a\", allow = \"no\" }]", "true or false", "\"no\""),
    ] {
        let error = parsed(&format!("{key} = {value}")).expect_err(value).to_string();
        let end = format!(": expected {expected}, found {found}");
        assert!(error.starts_with("robot.toml:1:") && error.ends_with(&end), "{error}\n{end}");
    }
}

#[test]
fn location_counts_characters() {
    refused(
        "# Überschrift\n  network = { mode = \"lan\", host = \"ä\" }",
        "robot.toml:2:36: network.host: expected a name of 1 to 64 letters, digits, '-', '.' and \
         '_', found \"ä\"",
    );
}

#[test]
fn invalid_pattern_is_reported_with_reason() {
    for (pattern, why) in [
        ("/camera/fro*", "'*' at character 12 is not allowed"),
        ("", "it is empty"),
        ("/a//b", "before the '/' at character 4 is empty"),
        (&"/a".repeat(500), "at most 255 are allowed"),
    ] {
        for table in ["rule", "topic"] {
            let text = format!("[[network.{table}]]\ntopic = \"{pattern}\"\nallow = true");
            let text = text.replace(if table == "topic" { "\nallow = true" } else { "\r" }, "");
            let error = parsed(&text).expect_err(pattern).to_string();
            let start =
                format!("robot.toml:2:9: network.{table}.topic: expected a topic pattern (");
            assert!(error.starts_with(&start) && error.contains(why), "{error}");
        }
    }
}

#[test]
fn invalid_endpoint_is_reported_with_reason() {
    for (text, why) in [
        ("", "it does not start with \"tcp/\""),
        ("10.0.0.2:7450", "it does not start with \"tcp/\""),
        ("udp/10.0.0.2:7450", "the protocol is not tcp"),
        ("tcp/10.0.0.2", "it has no port"),
        ("tcp/10.0.0.2:", "its port is invalid"),
        ("tcp/10.0.0.2:0", "its port is invalid"),
        ("tcp/10.0.0.2:65536", "its port is invalid"),
        ("tcp/10.0.0.2:65535", "the bulk lane needs the next port, which does not exist"),
        ("tcp/10.0.0.2:+1", "its port is not a number"),
        ("tcp/fe80::1:7450", "an IPv6 address must be in brackets"),
        ("tcp/[fe80::xyz]:7450", "its IPv6 address is invalid"),
        ("tcp/:7450", "its host is neither an address nor a name"),
        ("tcp/a b:7450", "its host is neither an address nor a name"),
        ("tcp/a#x:7450", "its host is neither an address nor a name"),
        ("tcp/[::1%a b]:7450", "its host is neither an address nor a name"),
    ] {
        let found = if text.is_empty() { "an empty text".into() } else { format!("{text:?}") };
        refused(
            &format!("network.listen = [\"tcp/a:1\", \"{text}\"]"),
            &format!(
                "robot.toml:1:30: network.listen: expected {} ({why}), found {found}",
                endpoint::ENDPOINT_FORMAT
            ),
        );
    }
}

#[test]
fn rejects_contradictory_settings() {
    refused(
        "network.mode = \"peers\"",
        "robot.toml:1: expected listen or connect endpoints (network.listen, network.connect, \
         RNET_LISTEN, RNET_CONNECT) with mode \"peers\", found neither",
    );
    refused(
        "[network]\nmode = \"peers\"\nlisten = [\"tcp/a:1\"]\ninterfaces = [\"eth0\"]",
        "robot.toml:4:14: network.interfaces: expected mode = \"lan\" with interfaces, found an \
         array",
    );
}

#[test]
fn invalid_toml_is_reported_with_location() {
    for (text, at) in [
        ("[network\n", "robot.toml:1:"),
        ("\n\nnetwork = \n", "robot.toml:3:"),
        ("[network]\nmode = \"lan\"\nmode = \"off\"", "robot.toml:3:"),
        ("network = \"lan\"\n[network]\n", "robot.toml:2:"),
        ("a = \"\u{1}\"", "robot.toml:1:"),
        (&"[".repeat(100_000), "robot.toml:1:"),
    ] {
        let error = parsed(text).expect_err(text);
        assert!(matches!(error, ConfigError::Syntax { .. }), "{error}");
        assert!(error.to_string().starts_with(at), "{error}");
    }
}

#[test]
fn flags_override_environment_and_environment_overrides_file() {
    let (_dir, path) = file(WHOLE.as_bytes());
    let text = |text: &str| Some(text.to_owned());
    let overrides = Overrides { config: Some(path.clone()), ..Overrides::default() };
    assert_eq!(loaded(&overrides, &[]).unwrap().host, "robot-1");
    let env: [(&str, &OsStr); 7] = [
        ("RNET_CONFIG", "/nonexistent".as_ref()),
        ("RNET_NETWORK", "off".as_ref()),
        ("RNET_HOST", "by-env".as_ref()),
        ("RNET_LISTEN", " tcp/a:1 , tcp/b:2".as_ref()),
        ("RNET_CONNECT", "".as_ref()),
        ("RNET_INTERFACES", " eth1, eth2 ".as_ref()),
        ("RNET_LOST_AFTER_MS", "900".as_ref()),
    ];
    let config = loaded(&overrides, &env).unwrap();
    assert_eq!((config.mode, config.mode_source.to_string().as_str()), (Mode::Off, "RNET_NETWORK"));
    assert_eq!(config.host, "by-env");
    assert_eq!(config.listen.len(), 2);
    assert_eq!(config.connect.len(), 2, "an empty variable counts as unset");
    assert_eq!(WithSource::values(&config.interfaces), ["eth1", "eth2"]);
    assert_eq!(config.interfaces[1].source, "RNET_INTERFACES");
    assert_eq!(config.listen[0].source, "RNET_LISTEN");
    assert_eq!(config.lost_after, Duration::from_millis(900));
    let overrides = Overrides {
        config: Some(path.clone()),
        network: text("lan"),
        host: text("by-flag"),
        listen: text(""),
        connect: text("tcp/c:3"),
        interfaces: text("wlan0"),
        lost_after_ms: text("60000"),
    };
    let config = loaded(&overrides, &env).unwrap();
    assert_eq!((config.mode, config.mode_source.to_string().as_str()), (Mode::Lan, "--network"));
    assert_eq!((config.host.as_str(), config.listen.len()), ("by-flag", 0));
    assert_eq!(config.connect[0].to_string(), "tcp/c:3");
    assert_eq!((config.interfaces[0].value.as_str(), config.interfaces.len()), ("wlan0", 1));
    assert_eq!(config.lost_after, Duration::from_secs(60));
    let by_env = loaded(&Overrides::default(), &[("RNET_CONFIG", path.as_os_str())]).unwrap();
    assert_eq!(by_env.file, Some(path));
}

#[test]
fn host_name_defaults_to_system_host_name() {
    let host = parsed("").unwrap().host;
    assert_eq!(invalid_host_reason(&host), None, "{host}");
}

#[test]
fn invalid_variable_or_flag_is_reported() {
    for (name, value, expected) in [
        (
            "RNET_NETWORK",
            OsStr::new("lam"),
            "RNET_NETWORK: expected \"off\", \"lan\" or \"peers\", found \"lam\"; did you mean \
             \"lan\"?",
        ),
        (
            "RNET_NETWORK",
            OsStr::new("peers"),
            "RNET_NETWORK: expected listen or connect endpoints (network.listen, network.connect, \
             RNET_LISTEN, RNET_CONNECT) with mode \"peers\", found neither",
        ),
        (
            "RNET_HOST",
            OsStr::new("a/b"),
            "RNET_HOST: expected a name of 1 to 64 letters, digits, '-', '.' and '_', found \
             \"a/b\"",
        ),
        ("RNET_HOST", OsStr::from_bytes(b"\xff"), "RNET_HOST: expected text, found \"\u{fffd}\""),
        (
            "RNET_CONNECT",
            OsStr::new("tcp/a:1,b"),
            "RNET_CONNECT: expected an endpoint such as \"tcp/10.0.0.2:7450\", with a port of \
             1 to 65534 (it does not start with \"tcp/\"), found \"b\"",
        ),
        (
            "RNET_INTERFACES",
            OsStr::new("eth0,et/h1"),
            "RNET_INTERFACES: expected a network interface name of at most 15 characters, \
             found \"et/h1\"",
        ),
        (
            "RNET_LOST_AFTER_MS",
            OsStr::new("299"),
            "RNET_LOST_AFTER_MS: expected a whole number of milliseconds, 300 to 60000, found \
             \"299\"",
        ),
        (
            "RNET_LOST_AFTER_MS",
            OsStr::new("1 s"),
            "RNET_LOST_AFTER_MS: expected a whole number of milliseconds, 300 to 60000, found \
             \"1 s\"",
        ),
    ] {
        let (_dir, path) = file(b"");
        let overrides = Overrides { config: Some(path), ..Overrides::default() };
        let error = loaded(&overrides, &[(name, value)]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn unreadable_file_is_reported_with_its_source() {
    let dir = Dir::new();
    let missing = dir.0.join("missing.toml");
    let long = vec![b'#'; (1 << 20) + 1];
    let (_long_dir, long) = file(&long);
    let (_bad_dir, bad) = file(b"# fine\nhost = \"\xff\"\n");
    for (path, what) in [
        (missing.as_path(), "cannot be read: No such file or directory"),
        (&dir.0, "is not a file"),
        (Path::new("/dev/zero"), "is not a file"),
        (&long, "has more than 1048576 bytes"),
        (&bad, "line 2 is not UTF-8"),
    ] {
        let error =
            loaded(&Overrides::default(), &[("RNET_CONFIG", path.as_os_str())]).unwrap_err();
        let error = error.to_string();
        let start = format!("{}: {what}", path.display());
        assert!(error.starts_with(&start) && error.ends_with(" (named by RNET_CONFIG)"), "{error}");
    }
    // Root may read any file, so the test cannot check this as root.
    let (_dir, secret) = file(b"");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(&secret, mode).unwrap();
    if std::fs::File::open(&secret).is_err() {
        let overrides = Overrides { config: Some(secret), ..Overrides::default() };
        let error = loaded(&overrides, &[]).unwrap_err().to_string();
        assert!(error.contains("Permission denied") && error.ends_with("(named by --config)"));
    }
}

#[test]
fn guide_shows_valid_files() {
    let page = include_str!("../../../../docs/guide/two-computers.md");
    let files: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(files.len(), 5);
    for text in files {
        let config = parsed(text).expect(text);
        // A file with only a rule is an extract.
        assert!(config.mode != Mode::Off || text.starts_with("[[network.rule]]"), "{text}");
        assert_eq!(config.check_insecure(), Ok(()), "{text}");
    }
}

/// Texts that are almost a configuration.
fn nearly() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "[network]",
        "[[network.rule]]",
        "[[network.topic]]",
        "network",
        "mode",
        "host",
        "topic",
        "listen",
        "allow",
        "every",
        "rate_limit_hz",
        "\n",
        " = ",
        "=",
        ".",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"",
        "'''",
        "\"lan\"",
        "\"/a/**\"",
        "true",
        "0x1f",
        "-1",
        "1e400",
        "nan",
        "é",
        "#",
        "\u{0}",
        "\u{feff}",
        "99999999999999999999",
        "[\"tcp/[::1]:1\"]",
        "1979-05-27",
    ]);
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in prop_oneof![any::<String>(), nearly()]) {
        if let Err(error) = parsed(&text) {
            prop_assert!(error.to_string().starts_with("robot.toml"), "{error}");
        }
    }

    #[test]
    fn endpoint_round_trips_through_text(text in "tcp/[a-z0-9.:\\[\\]%-]{0,20}:[0-9]{1,6}") {
        if let Ok(endpoint) = text.parse::<Endpoint>() {
            prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
        }
    }
}
