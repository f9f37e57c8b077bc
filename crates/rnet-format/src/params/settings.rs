//! What a parameter file sets.
//!
//! Two shapes are read. Ours names the node and then its parameters:
//! ```yaml
//! /arm/controller:
//!   gain: 1.5
//!   pid/p: 2.0
//! ```
//! That of ROS 2 has `ros__parameters:` in between, may give the node's name in parts, and joins the parts of
//! a parameter's name by dots. Either may nest instead.

use rnet::NamePattern;
use rnet::limits::MAX_NODE_NAME_LEN_BYTES;

use crate::yaml::{Key, Problem, Tree, TreeValue};

/// The word that tells a ROS 2 file.
const ROS_PARAMETERS_KEY: &str = "ros__parameters";

/// One value for one parameter of one node, or of all nodes of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `/arm`, or a pattern: `/**`, `/arm/*`.
    pub node: String,
    /// `/pid/p`
    pub name: String,
    /// Its value, as it is written.
    pub value: Tree,
    /// The line, from 1.
    pub line: usize,
    /// Whether it is of a file of ROS 2.
    pub is_ros: bool,
}

impl Setting {
    /// Whether every node of ROS 2 has it, so that `ros2 param dump` writes it.
    pub fn is_of_every_ros_node(&self) -> bool {
        let names = ["/use_sim_time", "/start_type_description_service"];
        self.is_ros
            && (names.contains(&self.name.as_str()) || self.name.starts_with("/qos_overrides/"))
    }

    /// Whether it is for the nodes of a pattern.
    pub fn is_for_many(&self) -> bool {
        self.node.contains('*')
    }

    /// Whether it is for this node. `*` stands for one part of a name, `**` for any number of them.
    pub fn is_for(&self, node: &str) -> bool {
        let pattern = NamePattern::new("node pattern", &self.node, MAX_NODE_NAME_LEN_BYTES);
        pattern.is_ok_and(|pattern| pattern.matches(node))
    }
}

/// All that a file sets, in its order.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(root: Option<Tree>) -> Result<Vec<Setting>, Vec<Problem>> {
    let Some(root) = root else { return Ok(Vec::new()) };
    let nodes = match root.value {
        TreeValue::Map(nodes) => nodes,
        TreeValue::Scalar(scalar) if scalar.plain && scalar.text.is_empty() => {
            return Ok(Vec::new());
        }
        _ => {
            return Err(vec![Problem::new(root.line, "expected node names, such as /arm:")]);
        }
    };
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for (key, tree) in nodes {
        if key.text == ROS_PARAMETERS_KEY {
            problems.push(Problem::new(
                key.line,
                format!("{ROS_PARAMETERS_KEY} must be under a node name"),
            ));
            continue;
        }
        let node = slashed(&key.text);
        if has_ros_parameters(&tree) {
            parse_ros_node(&node, tree, key.line, &mut all, &mut problems);
        } else {
            parse_params(&node, "", &key, tree, &mut all, &mut problems);
        }
    }
    find_duplicates(&all, &mut problems);
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

/// Whether this is, or leads to, the parameters of a ROS 2 node.
fn has_ros_parameters(tree: &Tree) -> bool {
    match &tree.value {
        TreeValue::Map(pairs) => pairs
            .iter()
            .any(|(key, tree)| key.text == ROS_PARAMETERS_KEY || has_ros_parameters(tree)),
        _ => false,
    }
}

fn slashed(name: &str) -> String {
    format!("/{}", name.trim_matches('/'))
}

/// A node of ROS 2, or what its name begins with.
fn parse_ros_node(
    node: &str,
    tree: Tree,
    line: usize,
    all: &mut Vec<Setting>,
    problems: &mut Vec<Problem>,
) {
    let TreeValue::Map(pairs) = tree.value else {
        problems.push(Problem::new(line, format!("expected {ROS_PARAMETERS_KEY} under {node}")));
        return;
    };
    for (key, tree) in pairs {
        if key.text == ROS_PARAMETERS_KEY {
            let before = all.len();
            parse_params(node, "", &key, tree, all, problems);
            all[before..].iter_mut().for_each(|setting| setting.is_ros = true);
        } else {
            let below = format!("{}{}", node.trim_end_matches('/'), slashed(&key.text));
            parse_ros_node(&below, tree, key.line, all, problems);
        }
    }
}

/// The parameters below a node, whose names begin with `prefix`.
fn parse_params(
    node: &str,
    prefix: &str,
    key: &Key,
    tree: Tree,
    all: &mut Vec<Setting>,
    problems: &mut Vec<Problem>,
) {
    match tree.value {
        TreeValue::Map(pairs) => {
            for (key, tree) in pairs {
                let name = key.text.replace('.', "/");
                let name = format!("{prefix}/{}", name.trim_matches('/'));
                parse_params(node, &name, &key, tree, all, problems);
            }
        }
        // `/arm:` with nothing below sets nothing.
        TreeValue::Scalar(scalar)
            if prefix.is_empty() && scalar.plain && scalar.text.is_empty() => {}
        _ if prefix.is_empty() => {
            let why = format!("expected parameter names under {}", key.text);
            problems.push(Problem::new(key.line, why));
        }
        what => all.push(Setting {
            node: node.to_owned(),
            name: prefix.to_owned(),
            line: key.line,
            value: Tree { line: tree.line, value: what },
            is_ros: false,
        }),
    }
}

/// Finds what is set twice by names that are written differently.
fn find_duplicates(all: &[Setting], problems: &mut Vec<Problem>) {
    let mut seen = std::collections::HashMap::new();
    for setting in all {
        let at = (setting.node.as_str(), setting.name.as_str());
        if let Some(first) = seen.insert(at, setting.line) {
            let why = format!("{} of {} is set twice; first in line {first}", at.1, at.0);
            problems.push(Problem::new(setting.line, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::tree;

    fn read(text: &str) -> Result<Vec<(String, usize)>, Vec<Problem>> {
        let all = parse(tree::read(text).map_err(|p| vec![p])?)?;
        Ok(all.into_iter().map(|s| (format!("{} {}", s.node, s.name), s.line)).collect())
    }

    fn names(text: &str) -> Vec<String> {
        read(text).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn our_shape() {
        let text = "/arm:\n  gain: 1\n  pid/p: 2\n  pid.i: 3\n  leg:\n    left: 4\nlidar: {rate: 5}\n/empty:\n";
        let expected =
            ["/arm /gain", "/arm /pid/p", "/arm /pid/i", "/arm /leg/left", "/lidar /rate"];
        assert_eq!(names(text), expected);
        assert_eq!(read(text).unwrap()[3].1, 6);
        assert_eq!(names(""), [""; 0]);
        assert_eq!(names("---\n"), [""; 0]);
    }

    #[test]
    fn the_shapes_of_ros() {
        let text = "/arm/controller:\n  ros__parameters:\n    gain: 1\n    pid.p: 2\n    pid:\n      d: 3\n";
        let expected =
            ["/arm/controller /gain", "/arm/controller /pid/p", "/arm/controller /pid/d"];
        assert_eq!(names(text), expected);
        let text = "arm:\n  controller:\n    ros__parameters: {gain: 1}\n  gripper:\n    ros__parameters: {force: 2}\n";
        assert_eq!(names(text), ["/arm/controller /gain", "/arm/gripper /force"]);
        assert_eq!(
            names("/**:\n  ros__parameters:\n    use_sim_time: true\n"),
            ["/** /use_sim_time"]
        );
        assert_eq!(names("/**/arm:\n  ros__parameters: {a: 1}\n"), ["/**/arm /a"]);
    }

    #[test]
    fn every_error_is_reported_with_its_line() {
        let text = "ros__parameters: {a: 1}\n/arm: 3\n/leg:\n  ros__parameters: {a.b: 1, a: {b: 2}}\n  x: 1\n";
        let problems = read(text).unwrap_err();
        let lines: Vec<usize> = problems.iter().map(|p| p.line).collect();
        assert_eq!(lines, [1, 2, 5, 4], "{problems:?}");
        assert!(problems[3].why.contains("/a/b of /leg is set twice"), "{problems:?}");
        assert!(read("[1]").unwrap_err()[0].why.contains("expected node names"));
    }
}
