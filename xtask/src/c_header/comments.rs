//! Converts comments from rustdoc, as cbindgen writes them, to Doxygen.

/// Longest comment that stays on one line, in bytes.
const MAX_LINE_LEN_BYTES: usize = 110;

/// Safety sections become preconditions, links to Rust items become code, and short comments one line.
pub fn to_doxygen(header: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_precondition = false;
    for line in header.lines() {
        let comment = line.trim_start().strip_prefix("* ");
        if comment.is_some_and(|text| text.trim() == "# Safety") {
            is_precondition = true;
            continue;
        }
        let mut line = line.replace("[`", "`").replace("`]", "`");
        if comment.is_some() && std::mem::take(&mut is_precondition) {
            line = line.replacen("* ", "* @pre ", 1);
        }
        lines.push(line);
        join(&mut lines);
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Makes one line of the last three, if they are a short comment.
fn join(lines: &mut Vec<String>) {
    let [.., open, text, close] = lines.as_slice() else { return };
    let Some(inner) = text.trim_start().strip_prefix("* ") else { return };
    if open.trim() == "/**" && close.trim() == "*/" {
        let indent = &open[..open.len() - open.trim_start().len()];
        let joined = format!("{indent}/** {inner} */");
        if joined.len() <= MAX_LINE_LEN_BYTES {
            lines.truncate(lines.len() - 3);
            lines.push(joined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::to_doxygen;

    #[test]
    fn safety_sections_become_preconditions() {
        let text =
            "/**\n * Frees [`Type`].\n *\n * # Safety\n * `ty` is null\n * or a type.\n */\n";
        let now = "/**\n * Frees `Type`.\n *\n * @pre `ty` is null\n * or a type.\n */\n";
        assert_eq!(to_doxygen(text), now);
    }

    #[test]
    fn short_comments_become_one_line() {
        assert_eq!(
            to_doxygen("  /**\n   * The first byte.\n   */\n  int a;\n"),
            "  /** The first byte. */\n  int a;\n"
        );
        let long = format!("/**\n * {}\n */\n", "x".repeat(120));
        assert_eq!(to_doxygen(&long), long);
    }
}
