//! The standard ROS 2 messages that are counterparts of built-in messages. `standard.msg` contains their
//! fields.

const TYPES: &str = include_str!("standard.msg");

/// Name and fields of each type.
fn types() -> impl Iterator<Item = (&'static str, &'static str)> {
    TYPES.split("===\n").filter_map(|one| one.trim_end().strip_prefix("MSG: ")?.split_once('\n'))
}

fn fields(name: &str) -> &'static str {
    types().find(|(of, _)| *of == name).map_or("", |(_, fields)| fields)
}

/// The description of a type, followed by the types that it uses.
pub fn text(name: &str) -> String {
    let (mut text, mut done, mut todo) = (fields(name).to_owned(), vec![name], Vec::new());
    let named = |fields: &'static str| {
        let types = fields.lines().filter_map(|line| line.split(['[', ' ']).next());
        types.filter(|ty| ty.contains('/')).collect::<Vec<&'static str>>()
    };
    todo.extend(named(fields(name)));
    while let Some(next) = todo.pop() {
        if done.contains(&next) {
            continue;
        }
        done.push(next);
        let line = "=".repeat(80);
        text.push_str(&format!("\n{line}\nMSG: {next}\n{}", fields(next)));
        todo.extend(named(fields(next)));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::super::definition::Definition;
    use super::*;

    #[test]
    fn parses_all_standard_messages() {
        assert!(types().count() > 40);
        for (name, _) in types() {
            let read = Definition::parse(name, &text(name)).unwrap();
            assert!(!read.fields(name).is_empty(), "{name}");
        }
    }
}
