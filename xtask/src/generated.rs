//! Files that a task generates and that are checked in.

use std::path::Path;

use crate::Finding;

/// The path from the root, and the text.
pub type GeneratedFile = (String, String);

/// `--write`, or nothing; `None` for anything else.
pub fn is_write(rest: &[String]) -> Option<bool> {
    match rest {
        [] => Some(false),
        [option] if option == "--write" => Some(true),
        _ => None,
    }
}

/// Writes the files, or compares them with those of the tree; `command` updates them.
pub fn update(
    root: &Path,
    files: &[GeneratedFile],
    write: bool,
    command: &str,
) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for (path, text) in files {
        let full = root.join(path);
        let before = std::fs::read_to_string(&full).unwrap_or_default();
        if before == *text {
            continue;
        }
        if write {
            let folder = full.parent().ok_or_else(|| format!("{path}: has no directory"))?;
            std::fs::create_dir_all(folder).map_err(|e| format!("{path}: {e}"))?;
            std::fs::write(&full, text).map_err(|e| format!("{path}: {e}"))?;
        } else {
            findings.push(difference(path, &before, text, command));
        }
    }
    Ok(findings)
}

/// The first line that differs.
fn difference(path: &str, before: &str, now: &str, command: &str) -> Finding {
    let same = before.lines().zip(now.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end of file)").to_owned();
    let text = format!(
        "is out of date: run `{command}` and commit the file\n- {}\n+ {}",
        line(before),
        line(now)
    );
    Finding::new(format!("{path}:{}", same + 1), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_line_and_the_command_are_reported() {
        let found = difference("a.h", "one\ntwo\n", "one\n2\n", "cargo xtask a --write");
        assert_eq!(found.place, "a.h:2");
        let text = "is out of date: run `cargo xtask a --write` and commit the file\n- two\n+ 2";
        assert_eq!(found.text, text);
        assert!(difference("a.h", "", "one\n", "x").text.ends_with("- (end of file)\n+ one"));
    }
}
