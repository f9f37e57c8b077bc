//! Checks the lints that every crate must inherit, in the text of its Cargo.toml.

use crate::Finding;

const SAFETY_LINT: &str = "undocumented_unsafe_blocks = \"deny\"";

/// A workspace must deny unsafe blocks without a SAFETY comment; a package must inherit that.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if has_section(text, "workspace") && !section_has(text, "workspace.lints.clippy", SAFETY_LINT) {
        let text = format!("[workspace.lints.clippy] lacks `{SAFETY_LINT}`");
        findings.push(Finding::new(path, text));
    }
    if has_section(text, "package") && !section_has(text, "lints", "workspace = true") {
        findings.push(Finding::new(path, "lacks `[lints]` with `workspace = true`"));
    }
    findings
}

fn has_section(text: &str, section: &str) -> bool {
    text.lines().any(|line| line.trim() == format!("[{section}]"))
}

fn section_has(text: &str, section: &str, entry: &str) -> bool {
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == format!("[{section}]");
        } else if inside && line == entry {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_workspace_denies_undocumented_unsafe_blocks() {
        let good = "[workspace]\n[workspace.lints.clippy]\nundocumented_unsafe_blocks = \"deny\"\n";
        assert_eq!(check("Cargo.toml", good), []);
        assert_eq!(check("Cargo.toml", &good.replace("deny", "warn")).len(), 1);
        assert_eq!(check("Cargo.toml", "[workspace]\n").len(), 1);
    }

    #[test]
    fn a_package_inherits_the_lints() {
        assert_eq!(check("Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"), []);
        assert_eq!(check("Cargo.toml", "[package]\n\n[dependencies]\n").len(), 1);
        let elsewhere = "[package]\n[lints]\n[other]\nworkspace = true\n";
        assert_eq!(check("Cargo.toml", elsewhere).len(), 1);
    }
}
