//! docs/design/state-layout.md and the code contain the same numbers.

use std::collections::BTreeMap;

use rnet_ring::state::layout::*;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/state-layout.md");
    std::fs::read_to_string(path).expect("the page exists")
}

/// Rows of the page that start with a name in code font and a number.
fn numbers(page: &str) -> BTreeMap<String, usize> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').to_owned();
        Some((name, cells.next()?.parse().ok()?))
    });
    rows.collect()
}

#[test]
fn page_and_code_contain_the_same_numbers() {
    let domain = Geometry::DOMAIN;
    let code = BTreeMap::from([
        ("root_bits", domain.root_bits as usize),
        ("journal_bits", domain.journal_bits as usize),
        ("process_slots", domain.process_slots),
        ("followers", domain.followers),
        ("persist_requests", domain.persist_requests),
        ("slabs", domain.slabs),
        ("process_slots_at", domain.process_slots_at()),
        ("leases_at", domain.leases_at()),
        ("followers_at", domain.followers_at()),
        ("persist_requests_at", domain.persist_requests_at()),
        ("journal_at", domain.journal_at()),
        ("root_at", domain.root_at()),
        ("table_at", domain.table_at()),
        ("blocks_at", domain.blocks_at()),
        ("words", domain.words()),
        ("MAGIC_AT", MAGIC_AT),
        ("SEED_AT", SEED_AT),
        ("LOADED_AT", LOADED_AT),
        ("GEOMETRY_AT", GEOMETRY_AT),
        ("TAIL_AT", TAIL_AT),
        ("TAKEN_LEASES_AT", TAKEN_LEASES_AT),
        ("ASLEEP_AT", ASLEEP_AT),
        ("HIGH_AT", HIGH_AT),
        ("LOW_AT", LOW_AT),
        ("PERSISTER_AT", PERSISTER_AT),
        ("PROCESS_OWNER", PROCESS_OWNER),
        ("PROCESS_SWEEPER", PROCESS_SWEEPER),
        ("PROCESS_BUSY", PROCESS_BUSY),
        ("PROCESS_WILLS", PROCESS_WILLS),
        ("PROCESS_CLAIMS", PROCESS_CLAIMS),
        ("PROCESS_SLAB", PROCESS_SLAB),
        ("PROCESS_NEW", PROCESS_NEW),
        ("LEASE_OWNER", LEASE_OWNER),
        ("LEASE_REVISION", LEASE_REVISION),
        ("FOLLOWER_OWNER", FOLLOWER_OWNER),
        ("FOLLOWER_FILTER", FOLLOWER_FILTER),
        ("FOLLOWER_BELL", FOLLOWER_BELL),
    ]);
    let code: BTreeMap<String, usize> =
        code.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(numbers(&page()), code);
}

/// Each named pair of operations appears at both operations, and on the page.
#[test]
fn each_sync_name_has_two_ends() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/state");
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the sources exist") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        for (at, _) in text.match_indices("SYNC-") {
            let name: String =
                text[at..].chars().take_while(|c| c.is_ascii_uppercase() || *c == '-').collect();
            *ends.entry(name).or_default() += 1;
        }
    }
    assert!(ends.len() >= 5, "{ends:?}");
    assert!(ends.values().all(|ends| *ends >= 2), "{ends:?}");
    let page = page();
    let undrawn: Vec<_> = ends.keys().filter(|name| !page.contains(name.as_str())).collect();
    assert!(undrawn.is_empty(), "{undrawn:?}");
}
