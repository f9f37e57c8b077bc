//! Settings that reach beyond this host need permission.

use super::*;

#[test]
fn settings_that_reach_beyond_this_host_need_insecure() {
    for (text, beyond) in [
        ("", None),
        ("[network]\nmode = \"off\"\nlisten = [\"tcp/0.0.0.0:1\"]", None),
        ("[network]\nlisten = [\"tcp/127.0.0.1:1\", \"tcp/[::1]:5\"]", None),
        ("[network]\nconnect = [\"tcp/LocalHost:1\"]", None),
        ("[network]\nmode = \"lan\"\ninterfaces = [\"lo\"]", None),
        (
            "[network]\nlisten = [\"tcp/127.1.2.3:1\", \"tcp/0.0.0.0:5\"]",
            Some("robot.toml:2:30: network.listen: tcp/0.0.0.0:5"),
        ),
        (
            "[network]\nlisten = [\"tcp/[::]:1\"]",
            Some("robot.toml:2:11: network.listen: tcp/[::]:1"),
        ),
        ("[network]\nconnect = [\"tcp/robot.local:1\"]", Some("connect: tcp/robot.local:1")),
        ("network = \"lan\"", Some("robot.toml:1: mode \"lan\"")),
        (
            "[network]\nmode = \"lan\"\ninterfaces = [\"lo\", \"eth0\"]",
            Some("robot.toml:2: mode \"lan\""),
        ),
    ] {
        let config = parsed(text).unwrap();
        assert_eq!(config.exposing_setting().as_deref(), beyond, "{text}");
        let refused = config.check_insecure().err();
        assert_eq!(refused.is_some(), beyond.is_some(), "{text}");
        let allowed = Config { insecure: true, ..config };
        assert_eq!(allowed.check_insecure(), Ok(()), "{text}");
        if let (Some(refused), Some(beyond)) = (refused, beyond) {
            assert!(
                refused.starts_with(beyond) && refused.contains("insecure = true"),
                "{refused}"
            );
        }
    }
    assert!(parsed("network.insecure = true").unwrap().insecure);
    let error = parsed("network.insecure = 1").unwrap_err().to_string();
    assert!(error.contains("network.insecure: expected true or false"), "{error}");
    let (_dir, path) = file(b"network.insecure = true");
    let overrides = Overrides { config: Some(path), ..Overrides::default() };
    for (value, expected) in [("1", true), ("0", false), ("", true)] {
        let config = loaded(&overrides, &[("RNET_INSECURE", value.as_ref())]).unwrap();
        assert_eq!(config.insecure, expected, "{value:?}");
    }
    let error = loaded(&overrides, &[("RNET_INSECURE", "yes".as_ref())]).unwrap_err().to_string();
    assert_eq!(error, "RNET_INSECURE: expected 1 or 0, found \"yes\"");
}
