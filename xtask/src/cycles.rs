//! Checks for import cycles: files of a crate that depend on each other.
//!
//! A cycle is a strongly connected component of the graph of a crate's files. Cycles of two files are common
//! (a type and its parts), three occur; a cycle of four or more is an undeclared module. `imports.rs` defines
//! what counts as an import.

mod imports;
mod modules;

use crate::{Finding, SourceFile};
use imports::Edge;

/// Maximum number of files in a cycle.
const MAX_FILES: usize = 3;

/// Checks the sources of all crates; the text summarizes what was checked.
pub fn check(files: &[SourceFile]) -> Result<(String, Vec<Finding>), String> {
    let roots: Vec<&str> = files.iter().filter_map(|f| is_root(&f.path)).collect();
    let mut findings = Vec::new();
    let (mut sources, mut edge_count) = (0, 0);
    let mut crates = roots.clone();
    crates.dedup();
    for name in &crates {
        let mut cycles = Vec::new();
        for root in files.iter().filter(|f| is_root(&f.path) == Some(*name)) {
            let tree = modules::Tree::read(&root.path, files)?;
            let edges = imports::edges(&tree);
            (sources, edge_count) = (sources + tree.files.len(), edge_count + edges.len());
            cycles.extend(
                cycles_of(tree.files.len(), &edges).iter().map(|c| describe(&tree, c, &edges)),
            );
        }
        cycles.sort_by_key(|cycle: &(usize, String)| std::cmp::Reverse(cycle.0));
        findings.extend(cycles.into_iter().map(|(_, text)| Finding::new(*name, text)));
    }
    if edge_count == 0 {
        return Err("found no import between files, so nothing was checked".into());
    }
    let summary =
        format!("{} crates, {sources} files, {edge_count} edges between them", crates.len());
    Ok((summary, findings))
}

/// The directory of the crate whose library or program has the root file `path`.
fn is_root(path: &str) -> Option<&str> {
    let (name, file) = path.split_once("/src/")?;
    let product = name == "python" || name.starts_with("crates/") || name.starts_with("bench/");
    (product && matches!(file, "lib.rs" | "main.rs")).then_some(name)
}

/// The strongly connected components of more than [`MAX_FILES`] files.
fn cycles_of(files: usize, edges: &[Edge]) -> Vec<Vec<usize>> {
    let reached: Vec<Vec<bool>> = (0..files).map(|from| reachable(from, files, edges)).collect();
    let circle_of = |file: usize| {
        let both = |other: &usize| reached[file][*other] && reached[*other][file];
        (0..files).filter(both).collect::<Vec<usize>>()
    };
    // Once per cycle, by its first file.
    let large = |file| Some(circle_of(file)).filter(|c| c.len() > MAX_FILES && c[0] == file);
    (0..files).filter_map(large).collect()
}

/// For each file, whether it is reachable from `from` by at least one edge.
fn reachable(from: usize, files: usize, edges: &[Edge]) -> Vec<bool> {
    let mut reached = vec![false; files];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.from == at) {
            if !std::mem::replace(&mut reached[edge.to], true) {
                open.push(edge.to);
            }
        }
    }
    reached
}

/// The size of a cycle, and its files with one import per edge.
fn describe(tree: &modules::Tree, cycle: &[usize], edges: &[Edge]) -> (usize, String) {
    let mut text = format!("a cycle of {} files, more than {MAX_FILES}; its imports:", cycle.len());
    let inside = |edge: &&Edge| cycle.contains(&edge.from) && cycle.contains(&edge.to);
    for edge in edges.iter().filter(inside) {
        let (from, to) = (&tree.files[edge.from].path, &tree.files[edge.to].path);
        text += &format!("\n  {from}:{} -> {to}: {}", edge.line, edge.import);
    }
    (cycle.len(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sources of the crate `crates/a`, by their paths below `src/`.
    fn sources(texts: &[(&str, &str)]) -> Vec<SourceFile> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/a/src/{path}"),
            bytes: (*text).into(),
        };
        texts.iter().map(file).collect()
    }

    fn findings(texts: &[(&str, &str)]) -> Vec<String> {
        let (_, findings) = check(&sources(texts)).expect("the sources parse");
        findings.into_iter().map(|f| format!("{}: {}", f.place, f.text)).collect()
    }

    const FOUR: &[(&str, &str)] = &[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::d::D; pub struct C;"),
        ("d.rs", "use crate::a::A; pub struct D;"),
    ];

    #[test]
    fn four_files_are_a_finding_with_an_import_for_each_edge() {
        let text = "crates/a: a cycle of 4 files, more than 3; its imports:\
            \n  crates/a/src/a.rs:1 -> crates/a/src/b.rs: crate::b::B\
            \n  crates/a/src/b.rs:1 -> crates/a/src/c.rs: crate::c::C\
            \n  crates/a/src/c.rs:1 -> crates/a/src/d.rs: crate::d::D\
            \n  crates/a/src/d.rs:1 -> crates/a/src/a.rs: crate::a::A";
        assert_eq!(findings(FOUR), [text]);
    }

    #[test]
    fn cycle_of_three_files_is_allowed() {
        let mut three = FOUR.to_vec();
        three[3].1 = "use crate::a::A; pub struct C;";
        assert_eq!(findings(&three), [""; 0]);
    }

    #[test]
    fn sources_without_imports_are_an_error() {
        assert!(check(&sources(&[("lib.rs", "struct A;")])).is_err());
        assert!(check(&[]).is_err());
    }
}
