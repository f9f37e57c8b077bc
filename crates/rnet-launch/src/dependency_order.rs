//! The start order of nodes: each after its dependencies.

use std::collections::BTreeMap;

use rnet::NodeName;

/// Names in an order in which each follows all its dependencies, or a cycle: its names in their order, with
/// the first repeated at the end.
pub fn topological_order(
    after: &BTreeMap<NodeName, Vec<NodeName>>,
) -> Result<Vec<NodeName>, Vec<NodeName>> {
    let mut order: Vec<NodeName> = Vec::new();
    for first in after.keys() {
        // The path from `first`: each name with the number of its dependencies that were visited.
        let mut stack: Vec<(&NodeName, usize)> = vec![(first, 0)];
        while let Some((name, at)) = stack.last_mut() {
            let name = *name;
            let next = match order.contains(name) {
                true => None,
                false => after.get(name).and_then(|names| names.get(*at)),
            };
            let Some(next) = next else {
                if !order.contains(name) {
                    order.push(name.clone());
                }
                stack.pop();
                continue;
            };
            *at += 1;
            if let Some(begin) = stack.iter().position(|(name, _)| *name == next) {
                let mut cycle: Vec<NodeName> =
                    stack[begin..].iter().map(|(name, _)| (*name).clone()).collect();
                cycle.push(next.clone());
                return Err(cycle);
            }
            stack.push((next, 0));
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &[&str])]) -> BTreeMap<NodeName, Vec<NodeName>> {
        let name = |text: &&str| NodeName::new(text).unwrap();
        lines.iter().map(|(of, after)| (name(of), after.iter().map(name).collect())).collect()
    }

    fn texts(names: Vec<NodeName>) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_node_follows_its_dependencies() {
        let order = topological_order(&map(&[
            ("a", &["c", "b"]),
            ("b", &["d"]),
            ("c", &["b"]),
            ("d", &[]),
        ]))
        .unwrap();
        assert_eq!(texts(order), ["/d", "/b", "/c", "/a"]);
    }

    #[test]
    fn cycle_is_reported_in_its_order() {
        let cycle = topological_order(&map(&[
            ("a", &["b"]),
            ("b", &["c"]),
            ("c", &["d", "b"]),
            ("d", &[]),
        ]));
        assert_eq!(texts(cycle.unwrap_err()), ["/b", "/c", "/b"]);
        assert_eq!(texts(topological_order(&map(&[("a", &["a"])])).unwrap_err()), ["/a", "/a"]);
    }
}
