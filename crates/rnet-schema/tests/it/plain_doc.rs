//! The tables of docs/design/plain-messages.md: structs without gaps, aligned fields, and a source for each
//! field of the Foxglove message that a plain message is converted to.

use std::collections::BTreeMap;
use std::path::Path;

/// Data after a header starts at a multiple of this.
const HEADER_MULTIPLE_BYTES: u64 = 64;

/// The rows of each table, as cells, by the heading above the table.
fn tables() -> BTreeMap<String, Vec<Vec<String>>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/plain-messages.md");
    let page = std::fs::read_to_string(page).expect("the page exists");
    let mut tables: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(text) = line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")) {
            heading = text.to_owned();
        } else if let Some(row) = line.strip_prefix("| ") {
            let cells = row.trim_end_matches('|').split('|').map(|c| c.trim().replace('`', ""));
            tables.entry(heading.clone()).or_default().push(cells.collect());
        }
    }
    tables
}

/// Size and count of a type in the notation of the page: `u32`, `8 i64`, `text`, `16 fields`.
fn element_bytes(ty: &str) -> (u64, u64) {
    let (count, ty) = ty.split_once(' ').unwrap_or(("1", ty));
    let bytes = match ty {
        "u8" | "text" => 1,
        "u16" => 2,
        "u32" | "fields" => 4,
        "i64" | "u64" | "f64" => 8,
        _ => panic!("the page names an unknown type `{ty}`"),
    };
    (count.parse().expect("a count"), bytes)
}

/// Checks a struct's table against the length in its heading; returns the length.
fn check_struct(heading: &str, rows: &[Vec<String>], field_bytes: Option<u64>) -> u64 {
    let (_, len) = heading.rsplit_once(", ").expect("the heading says the length");
    let len: u64 = len.strip_suffix(" bytes").and_then(|n| n.parse().ok()).expect("in bytes");
    let mut end = 0;
    for row in rows.iter().filter(|row| row[0] != "offset") {
        let (offset, bytes): (u64, u64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(
            offset, end,
            "{heading}: {} does not start at the end of the previous field",
            row[2]
        );
        end += bytes;
        if row[2] == "–" {
            continue;
        }
        let (count, align) = element_bytes(&row[3]);
        assert_eq!(offset % align, 0, "{heading}: {} is not aligned", row[2]);
        match row[3].as_str() {
            "text" => assert_eq!(bytes % 32, 0, "{heading}: {}", row[2]),
            "16 fields" => assert_eq!(Some(bytes), field_bytes.map(|n| n * count), "{heading}"),
            _ => assert_eq!(bytes, count * align, "{heading}: {}", row[2]),
        }
    }
    assert_eq!(end, len, "{heading}");
    len
}

#[test]
fn the_structs_have_no_gaps_and_are_aligned() {
    let tables = tables();
    let field = "Struct `Field`, 40 bytes";
    let field_bytes = check_struct(field, &tables[field], None);
    let headers: Vec<_> =
        tables.iter().filter(|(heading, _)| heading.starts_with("Struct `rnet.msgs.")).collect();
    assert_eq!(headers.len(), 3, "the page describes Image, PointCloud and Tensor");
    for (heading, rows) in headers {
        let len = check_struct(heading, rows, Some(field_bytes));
        assert_eq!(len % HEADER_MULTIPLE_BYTES, 0, "{heading}");
    }
}

#[test]
fn headers_start_with_the_same_fields() {
    let tables = tables();
    let starts: Vec<_> = tables
        .iter()
        .filter(|(heading, _)| heading.starts_with("Struct `rnet.msgs."))
        .map(|(_, rows)| rows[..6].iter().map(|row| row[..4].to_vec()).collect::<Vec<_>>())
        .collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|start| *start == starts[0]), "{starts:#?}");
}

#[test]
fn each_field_of_the_foxglove_message_has_a_source() {
    let tables = tables();
    for message in ["RawImage", "PointCloud"] {
        let rows = &tables[&format!("As `foxglove.{message}`")];
        let mut named: Vec<&str> = rows[1..].iter().map(|row| &*row[0]).collect();
        let path = format!("msgs/foxglove/{message}.proto");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&path))
            .expect("a built-in file");
        let mut fields: Vec<&str> = text.lines().filter_map(field).collect();
        assert!(fields.len() > 4, "{path}: the fields were not found");
        named.sort_unstable();
        fields.sort_unstable();
        assert_eq!(named, fields, "{message}");
    }
}

/// The name in a field declaration; these files contain one message and no enum.
fn field(line: &str) -> Option<&str> {
    let (declared, number) = line.trim().strip_suffix(';')?.split_once(" = ")?;
    number.parse::<u32>().ok().and(declared.rsplit(' ').next())
}
