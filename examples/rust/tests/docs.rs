//! Compares the documentation with the code: limits, and source locations.

use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// `4 KiB` as a number.
fn number(text: &str) -> u64 {
    let (digits, unit) = text.split_once(' ').unwrap_or((text, ""));
    let unit = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        other => panic!("unknown unit {other}"),
    };
    digits.parse::<u64>().expect("a number") * unit
}

#[test]
fn limits_in_the_documentation_are_those_of_the_code() {
    use rnet::limits::*;
    let code = [
        ("MAX_MESSAGE_LEN_BYTES", MAX_MESSAGE_LEN_BYTES as u64),
        ("MAX_INLINE_LEN_BYTES", MAX_INLINE_LEN_BYTES as u64),
        ("MAX_NODES_PER_DOMAIN", MAX_NODES_PER_DOMAIN as u64),
        ("RESERVED_TOOL_NODES", RESERVED_TOOL_NODES as u64),
        ("MAX_TOPICS_PER_DOMAIN", MAX_TOPICS_PER_DOMAIN as u64),
        ("MAX_ENDPOINTS_PER_NODE", MAX_ENDPOINTS_PER_NODE as u64),
        ("MAX_READERS_PER_CHANNEL", MAX_READERS_PER_CHANNEL as u64),
        ("MAX_PUBLISHERS_PER_SUBSCRIPTION", MAX_PUBLISHERS_PER_SUBSCRIPTION as u64),
        ("MAX_PINS_PER_READER", MAX_PINS_PER_READER as u64),
        ("MAX_CHUNKS_PER_CHANNEL", MAX_CHUNKS_PER_CHANNEL as u64),
        ("DEFAULT_LOG_LEN_BYTES", DEFAULT_LOG_LEN_BYTES),
        ("DEFAULT_POOL_LIMIT_BYTES", DEFAULT_POOL_LIMIT_BYTES),
        ("MAX_SCHEMA_LEN_BYTES", MAX_SCHEMA_LEN_BYTES as u64),
        ("MAX_TYPES_PER_NODE", MAX_TYPES_PER_NODE as u64),
        ("MAX_TOPIC_LEN_BYTES", MAX_TOPIC_LEN_BYTES as u64),
        ("MAX_NODE_NAME_LEN_BYTES", MAX_NODE_NAME_LEN_BYTES as u64),
        ("MAX_KEY_LEN_BYTES", MAX_KEY_LEN_BYTES as u64),
        ("MAX_VALUE_LEN_BYTES", MAX_VALUE_LEN_BYTES as u64),
        ("MAX_STATE_LEN_BYTES", MAX_STATE_LEN_BYTES),
        ("MAX_TRANSACTION_KEYS", MAX_TRANSACTION_KEYS as u64),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let page = read("docs/limits.md");
    let rows = page.lines().skip_while(|line| *line != "| limit | value | constant |").skip(2);
    let shown: Vec<(String, u64)> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[3].trim_matches('`').to_owned(), number(cells[2]))
        })
        .collect();
    assert_eq!(shown, code);
}

#[test]
fn pointers_of_architecture_exist() {
    let pages = ["ARCHITECTURE.md", "docs/design/threads.md", "docs/design/code-index.md"];
    let page = pages.map(read).concat();
    // Pieces alternate between text and code: `Type::function` (`path`).
    let pieces: Vec<&str> = page.split('`').collect();
    let mut functions = 0;
    for (at, piece) in pieces.iter().enumerate().skip(1).step_by(2) {
        if !(piece.starts_with("crates/") && piece.ends_with(".rs")) {
            continue;
        }
        let text = read(piece);
        if let Some((_, function)) = pieces[at - 2].split_once("::")
            // The line may end in between.
            && ["(", "in"].contains(&pieces[at - 1].trim())
        {
            assert!(text.contains(&format!("fn {function}")), "no {function} in {piece}");
            functions += 1;
        }
    }
    assert!(functions >= 8, "only {functions} pointers were found");
}
