//! `rnet keys`: the life of the keys of two hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::util::{CommandOutput, RunningCommand, TestEnv};

/// Two hosts with their own settings folders.
struct Hosts(TestEnv);

impl Hosts {
    fn new() -> Hosts {
        Hosts(TestEnv::new())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.dir.join(name)
    }

    /// `rnet` on a host; its keys file is `HOST/keys.pem`, its authority `HOST/rnet/authority`.
    fn command(&self, host: &str) -> Command {
        let mut command = self.0.command();
        let dir = self.path(host);
        fs::create_dir_all(&dir).unwrap();
        command.env("RNET_KEYS", dir.join("keys.pem")).env("XDG_CONFIG_HOME", &dir);
        command.env("RNET_HOST", host).current_dir(dir);
        command
    }

    fn run(&self, host: &str, args: &[&str]) -> CommandOutput {
        let mut command = self.command(host);
        command.arg("keys").args(args);
        RunningCommand::start(command).wait()
    }

    /// The findings of `rnet keys check --json`: check and level.
    fn check(&self, host: &str) -> serde_json::Value {
        let said = self.run(host, &["check", "--json"]);
        serde_json::from_str(&said.stdout).unwrap()
    }
}

#[test]
fn the_second_host_needs_one_command_and_one_file() {
    let hosts = Hosts::new();
    let said = hosts.run("robot", &["add-host", "laptop"]).ok();
    let file = hosts.path("robot/laptop.keys.pem");
    for part in [
        "created authority ",
        "this host robot, valid until ",
        "wrote laptop.keys.pem: host laptop",
        "rights: all",
        "copy this file to laptop",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let mode = |path: &str| fs::metadata(hosts.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("robot/laptop.keys.pem"), 0o600);
    assert_eq!(mode("robot/keys.pem"), 0o600);
    assert_eq!(mode("robot/rnet/authority"), 0o700);
    fs::create_dir_all(hosts.path("laptop")).unwrap();
    fs::rename(&file, hosts.path("laptop/keys.pem")).unwrap();
    for host in ["robot", "laptop"] {
        let said = hosts.run(host, &["check"]).ok();
        assert!(said.contains(&format!("host {host}, serial ")), "{said}");
        assert!(said.contains("the host may: all"), "{said}");
        assert_eq!(hosts.check(host)["problems"], 0);
    }
    // A third one: the authority exists.
    let said = hosts.run("robot", &["add-host", "arm"]).ok();
    assert!(!said.contains("created") && said.contains("host arm"), "{said}");
    // Not by mistake on a host of the robot.
    let why = hosts.run("laptop", &["add-host", "other"]).fails(1);
    assert!(why.contains("add hosts on the computer that has it"), "{why}");
    assert!(!hosts.path("laptop/rnet").exists());
    let why = hosts.run("robot", &["init"]).fails(1);
    assert!(why.contains("rnet keys add-host NAME"), "{why}");
}

#[test]
fn rights_are_given_and_shown() {
    let hosts = Hosts::new();
    hosts.run("robot", &["init", "--name", "main"]).ok();
    let args = ["add-host", "arm", "--publish", "/arm/**", "--publish", "log", "--read", "/a-1/*"];
    hosts.run("robot", &args).ok();
    let said = hosts.run("robot", &["check", "arm.keys.pem"]).ok();
    assert!(said.contains("the host may: publish /arm/**, publish /log, read /a-1/*\n"), "{said}");
    let list = hosts.run("robot", &["list", "--json"]).json();
    let names = list["hosts"].as_array().unwrap().iter().map(|host| host["host"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["arm", "main"]);
    assert_eq!(list["hosts"][0]["rights"]["publish"], serde_json::json!(["/arm/**", "/log"]));
    assert_eq!(list["hosts"][0]["rights"]["drive"], serde_json::json!([]));
    assert_eq!(list["hosts"][1]["rights"]["drive"], serde_json::json!(["/**"]));
    for (args, part) in [
        (&["add-host", "x", "--publish", "/a*"][..], "--publish: bad topic pattern"),
        (&["add-host", "a/b"], "host name"),
        (&["add-host", "x", "--days", "0"], "1 to 7300 days"),
    ] {
        let said = hosts.run("robot", args);
        assert!(said.code != Some(0) && said.stderr.contains(part), "{said:?}");
    }
    assert!(!hosts.path("robot/x.keys.pem").exists());
}

#[test]
fn a_revoked_host_is_shown_everywhere_it_is_known() {
    let hosts = Hosts::new();
    hosts.run("robot", &["add-host", "laptop"]).ok();
    let why = hosts.run("robot", &["export", "--revocations"]).fails(1);
    assert!(why.contains("no certificate has been revoked"), "{why}");
    let said = hosts.run("robot", &["revoke", "laptop"]).ok();
    assert!(said.contains("revoked laptop"), "{said}");
    // The robot's link finds the list beside its keys.
    assert!(hosts.path("robot/keys.pem.crl").exists());
    let list = hosts.run("robot", &["list"]).ok();
    assert!(list.lines().any(|l| l.contains("laptop") && l.contains("revoked")), "{list}");
    assert!(list.lines().any(|l| l.contains("robot") && l.contains("valid")), "{list}");
    let why = hosts.run("robot", &["revoke", "none"]).fails(1);
    assert!(why.contains("has not issued a certificate to host none"), "{why}");
    // The laptop, once it has the list.
    fs::create_dir_all(hosts.path("laptop")).unwrap();
    fs::rename(hosts.path("robot/laptop.keys.pem"), hosts.path("laptop/keys.pem")).unwrap();
    assert_eq!(hosts.check("laptop")["problems"], 0);
    let target = hosts.path("laptop/keys.pem.crl");
    hosts.run("robot", &["export", "--revocations", "-o", target.to_str().unwrap()]).ok();
    let said = hosts.run("laptop", &["check"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.contains("the certificate is revoked"), "{said:?}");
    assert!(said.stdout.contains("rnet keys add-host laptop"), "{said:?}");
    // New keys: the revoked certificate stays revoked.
    hosts.run("robot", &["add-host", "laptop"]).ok();
    fs::rename(hosts.path("robot/laptop.keys.pem"), hosts.path("laptop/keys.pem")).unwrap();
    assert_eq!(hosts.check("laptop")["problems"], 0);
}

#[test]
fn wrong_files_are_explained() {
    let hosts = Hosts::new();
    let said = hosts.run("robot", &["check"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.contains("cannot open") && said.stdout.contains("-> "), "{said:?}");
    let why = hosts.run("robot", &["list"]).fails(1);
    assert!(why.contains("rnet keys init"), "{why}");
    let why = hosts.run("robot", &["revoke", "laptop"]).fails(1);
    assert!(why.contains("no authority in "), "{why}");
    hosts.run("robot", &["add-host", "laptop", "--days", "10"]).ok();
    // It can be used, and is announced.
    let said = hosts.run("robot", &["check", "laptop.keys.pem"]).ok();
    assert!(said.contains("note     expires in 9 days, on "), "{said}");
    let keys = hosts.path("robot/keys.pem");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let said = hosts.run("robot", &["check"]);
    assert_eq!(said.code, Some(1));
    let advice = format!("-> run: chmod 600 {}", keys.display());
    assert!(said.stdout.contains(&advice) && said.stdout.contains("0644"), "{said:?}");
    let why = hosts.run("robot", &["token", "anna", "--role", "look"]).fails(1);
    assert!(why.contains("chmod 600"), "{why}");
}

#[test]
fn a_token_is_printed_once_and_no_secret_again() {
    let hosts = Hosts::new();
    hosts.run("robot", &["init"]).ok();
    let token = |args: &[&str]| hosts.run("robot", &[&["token"], args].concat());
    let said = token(&["anna", "--role", "look", "--days", "30"]);
    let secret = said.stdout.trim().to_owned();
    assert!(secret.len() == 43 && !said.stderr.contains(&secret), "{said:?}");
    assert!(said.stderr.contains("added token anna (look, until "), "{said:?}");
    token(&["ben", "--role", "drive"]).ok();
    let text = fs::read_to_string(hosts.path("robot/keys.pem")).unwrap();
    let key_line = text.lines().skip_while(|line| !line.contains("PRIVATE")).nth(1).unwrap();
    for args in [&["list"][..], &["list", "--json"], &["check"], &["check", "--json"], &["export"]]
    {
        let said = hosts.run("robot", args).ok();
        assert!(!said.contains(&secret) && !said.contains(key_line), "{said}");
    }
    let list = hosts.run("robot", &["list"]).ok();
    assert!(list.lines().any(|l| l.starts_with("anna") && l.contains("look")), "{list}");
    assert!(list.lines().any(|l| l.starts_with("ben") && l.contains("never")), "{list}");
    token(&["anna", "--remove"]).ok();
    let list = hosts.run("robot", &["list", "--json"]).json();
    assert_eq!(
        list["tokens"],
        serde_json::json!([{"name": "ben", "role": "drive", "expires": null}])
    );
    let why = token(&["anna", "--remove"]).fails(1);
    assert!(why.contains("has no token anna"), "{why}");
    // JSON has no secret.
    let why = token(&["eve", "--role", "look", "--json"]).fails(2);
    assert!(why.contains("leave out --json"), "{why}");
    token(&["eve"]).fails(2);
}

#[test]
fn a_host_renews_its_own_keys_in_place() {
    let hosts = Hosts::new();
    hosts.run("robot", &["init", "--days", "5"]).ok();
    hosts.run("robot", &["token", "anna", "--role", "look"]).ok();
    let said = hosts.run("robot", &["add-host", "robot"]).ok();
    assert!(!said.contains("copy this file"), "{said}");
    let said = hosts.run("robot", &["check"]).ok();
    assert!(said.contains("valid until") && said.contains("token anna"), "{said}");
    assert!(!said.contains("revoked"), "{said}");
    // Its certificate in the authority, as other programs read it.
    let pem = hosts.run("robot", &["export"]).ok();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n") && pem.ends_with("-----\n"), "{pem}");
    let json = hosts.run("robot", &["export", "--json"]).json();
    assert_eq!(json["pem"], pem);
}

#[test]
fn a_killed_command_leaves_nothing_half_done() {
    let hosts = Hosts::new();
    hosts.run("robot", &["init"]).ok();
    for n in 0..25 {
        let mut command = hosts.command("robot");
        let mut child = command.args(["keys", "add-host", "arm"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(n)); // sleep: the command is killed at another point
        child.kill().unwrap();
        child.wait().unwrap();
        let list = hosts.run("robot", &["list", "--json"]).json();
        let find = |name: &str| {
            let all = list["hosts"].as_array().unwrap();
            all.iter().find(|host| host["host"] == name).map(|host| host["serial"].clone())
        };
        assert!(find("robot").is_some(), "{list}");
        if hosts.path("robot/arm.keys.pem").exists() {
            let said = hosts.run("robot", &["check", "arm.keys.pem", "--json"]).json();
            let serial = &said["certificate"]["serial"];
            let revoked = list["revoked"].as_array().unwrap();
            let is_known = revoked.iter().any(|one| one["serial"] == *serial);
            assert!(is_known || find("arm").as_ref() == Some(serial), "{serial} {list}");
        }
    }
    hosts.run("robot", &["add-host", "arm"]).ok();
    hosts.run("robot", &["check", "arm.keys.pem"]).ok();
}

#[test]
fn this_host_is_named_as_in_its_settings_file() {
    let hosts = Hosts::new();
    let mut command = hosts.command("robot");
    fs::write(hosts.path("robot/robot.toml"), "[network]\nhost = \"base\"\n").unwrap();
    command.env_remove("RNET_HOST").args(["keys", "init"]);
    let said = RunningCommand::start(command).wait().ok();
    assert!(said.contains("host base"), "{said}");
}
