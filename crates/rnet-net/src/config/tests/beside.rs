//! Settings that exclude each other.

use super::*;

#[test]
fn interfaces_from_environment_need_mode_lan() {
    let (_dir, path) = file(b"");
    let overrides = Overrides { config: Some(path), ..Overrides::default() };
    let [lan, off] = ["lan", "off"].map(OsStr::new);
    for mode in [lan, off] {
        let env = [("RNET_NETWORK", mode), ("RNET_INTERFACES", "eth0".as_ref())];
        assert_eq!(WithSource::values(&loaded(&overrides, &env).unwrap().interfaces), ["eth0"]);
    }
    let env = [("RNET_LISTEN", "tcp/a:1".as_ref()), ("RNET_INTERFACES", "eth0".as_ref())];
    assert_eq!(
        loaded(&overrides, &env).unwrap_err().to_string(),
        "RNET_INTERFACES: expected mode \"lan\" with interfaces, found \"peers\" (listen or \
         connect endpoints are set)"
    );
}

#[test]
fn interfaces_from_file_need_mode_lan_from_any_source() {
    let text = "[network]\ninterfaces = [\"eth0\", \"eth1\"]\n";
    let start = "robot.toml:2:15: network.interfaces: expected mode \"lan\" with interfaces, found \"peers\"";
    let endpoints = format!("{text}listen = [\"tcp/a:1\"]");
    refused(&endpoints, &format!("{start} (listen or connect endpoints are set)"));
    for mode in ["", "mode = \"lan\"\n"] {
        let (_dir, path) = file(format!("{text}{mode}connect = [\"tcp/a:1\"]").as_bytes());
        let overrides = Overrides { config: Some(path.clone()), ..Overrides::default() };
        let by = |mode: &str| loaded(&overrides, &[("RNET_NETWORK", mode.as_ref())]);
        let error = by("peers").unwrap_err().to_string();
        let start = start.replace("robot.toml", &path.display().to_string());
        assert_eq!(error, format!("{start} (RNET_NETWORK)"), "{mode}");
        for fine in ["lan", "off"] {
            assert_eq!(WithSource::values(&by(fine).unwrap().interfaces), ["eth0", "eth1"]);
        }
    }
}

#[test]
fn rejects_endpoints_whose_lanes_share_a_port() {
    let expected = |first: &str, second: &str| {
        format!(
            "expected an address other than that of \"{first}\", or a port at least two away: the urgent lane uses \
             the given port, and the bulk lane the next one, found \"{second}\""
        )
    };
    let both = |first: &str, second: &str| {
        parsed(&format!("[network]\nlisten = [\"tcp/c:1\", \"{first}\", \"{second}\"]"))
    };
    for (first, second) in [
        ("tcp/0.0.0.0:7450", "tcp/0.0.0.0:7451"),
        ("tcp/0.0.0.0:7451", "tcp/0.0.0.0:7450"),
        ("tcp/0.0.0.0:7450", "tcp/0.0.0.0:7450"),
        ("tcp/0.0.0.0:7450", "tcp/10.0.0.2:7451"),
        ("tcp/10.0.0.2:7450", "tcp/0.0.0.0:7451"),
        ("tcp/[::]:7450", "tcp/10.0.0.2:7451"),
        ("tcp/[::]:7450", "tcp/[fe80::1%eth0]:7451"),
        ("tcp/[fe80::1%eth0]:7450", "tcp/[fe80::1%eth0]:7451"),
        ("tcp/robot.local:7450", "tcp/Robot.local:7451"),
    ] {
        let error = both(first, second).expect_err(second).to_string();
        let column = "listen = [\"tcp/c:1\", \"\", ".len() + first.len() + 1;
        let place = format!("robot.toml:2:{column}: network.listen");
        assert_eq!(error, format!("{place}: {}", expected(first, second)));
    }
    for (first, second) in [
        ("tcp/0.0.0.0:7450", "tcp/0.0.0.0:7452"),
        ("tcp/10.0.0.1:7450", "tcp/10.0.0.2:7451"),
        ("tcp/0.0.0.0:7450", "tcp/[fe80::1%eth0]:7450"),
        ("tcp/[fe80::1%eth0]:7450", "tcp/[fe80::1%eth1]:7450"),
        ("tcp/a:7450", "tcp/b:7451"),
    ] {
        assert_eq!(both(first, second).expect(second).listen.len(), 3);
    }
    let (_dir, path) = file(b"");
    let listen = Some("tcp/a:1,tcp/a:2".to_owned());
    let overrides = Overrides { config: Some(path), listen, ..Overrides::default() };
    let error = loaded(&overrides, &[]).unwrap_err().to_string();
    assert_eq!(error, format!("--listen: {}", expected("tcp/a:1", "tcp/a:2")));
}
