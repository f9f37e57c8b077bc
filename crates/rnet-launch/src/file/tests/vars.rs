//! Variables have types.

use super::*;

#[test]
fn variable_has_the_type_of_its_default() {
    let robot = "[var]\nsim = false\nn = 0x10\nside = \"left\"\n[[include]]\nfile = \"more.toml\"\n\
                 [node.real]\ncommand = [\"real\", \"${n}\", \"${side}\"]\nwhen = { sim = false, n = 16 }\n";
    let load = |more: &str, set: &[(&str, &str)]| {
        let dir = Dir::new(&[("robot.toml", robot), ("more.toml", more)]);
        dir.nodes(&choices("base", set))
    };
    let plan = load("", &[("side", "true"), ("n", "+16"), ("sim", "false")]).unwrap();
    assert_eq!(plan.nodes[0].process.command, ["real", "16", "true"]);
    assert_eq!(load("", &[]).unwrap().nodes[0].process.command, ["real", "16", "left"]);
    assert!(load("", &[("sim", "true")]).unwrap().nodes.is_empty());
    for wrong in ["maybe", "1", "False", "TRUE", "", "true "] {
        assert_eq!(
            load("", &[("sim", wrong)]).unwrap_err(),
            format!(
                "--set sim: expected true or false, like the default of sim at robot.toml:2:7, found {wrong:?}"
            )
        );
    }
    for wrong in ["abc", "1.5", "", "99999999999999999999"] {
        let error = load("", &[("n", wrong)]).unwrap_err();
        assert!(
            error.starts_with("--set n: expected a whole number, like the default of n"),
            "{error}"
        );
    }
    let node = |when: &str| {
        let text = format!("[node.a]\ncommand = [\"a\"]\nwhen = {{ {when} }}");
        load(&text, &[]).map(|plan| names(&plan).contains(&"/a")).map_err(|e| e.to_string())
    };
    assert_eq!(node("sim = false, side = \"left\", host = \"base\""), Ok(true));
    assert_eq!(node("n = 0b1_0000"), Ok(true));
    for (when, expected) in [
        ("sim = \"x\"", "true or false, like the default of sim at robot.toml:2:7, found \"x\""),
        ("sim = 1", "true or false, like the default of sim at robot.toml:2:7, found 1"),
        ("n = \"16\"", "a whole number, like the default of n at robot.toml:3:5, found \"16\""),
        ("side = true", "a string, like the default of side at robot.toml:4:8, found true"),
        ("host = 1", "a string, because host names are strings, found 1"),
    ] {
        let error = node(when).unwrap_err();
        assert!(error.starts_with("more.toml:3:") && error.ends_with(expected), "{error}");
    }
    // An included file may be launched alone, with its own defaults of the same type.
    assert!(load("[var]\nsim = true", &[]).is_ok());
    assert_eq!(
        load("[var]\nsim = \"no\"", &[]).unwrap_err(),
        "more.toml:2:7: var.sim: expected true or false, like the default of sim at robot.toml:2:7, found \"no\""
    );
}
