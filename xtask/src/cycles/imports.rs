//! Which file imports from which.
//!
//! File A imports from file B when code of A names an item that B defines, in a `use` declaration
//! or by any other path, in macros too. So that moving a name does not look like an import:
//!
//! - What counts is where an item is defined. A path through a re-export is followed to its end,
//!   and `use` of a module counts for the items that are named through it; so does a glob.
//! - A part belongs to its module: what it names of the modules that contain it is not an import, nor is `mod
//!   child;`. What a module names of its parts is one, and what the parts name of each other.
//! - A re-export (`pub use`) is none, as long as its file does not use the name itself.
//! - Inline modules belong to their file. Test code (`#[cfg(test)]`, `#[test]`) does not count.
//! - Methods that are called on a value are not seen: types come with an import somewhere else.

use super::modules::Tree;
use std::collections::BTreeMap;

/// One import for each pair of files.
#[derive(Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    /// Where it stands in the file `from`, and the path that it names.
    pub line: usize,
    pub import: String,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item, by the file that defines it.
    Item(usize),
}

/// A chain of re-exports that is longer leads nowhere: a glob may import its own module.
const MAX_HOPS: usize = 16;

/// All edges of the graph, in the order of their files, the first import of each.
pub fn edges(tree: &Tree) -> Vec<Edge> {
    let mut first: BTreeMap<(usize, usize), (usize, String)> = BTreeMap::new();
    for (at, module) in tree.modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|i| !i.reexport && i.name.is_some());
        let imports = imports.map(|i| (&i.path, i.line));
        let mentions = module.mentions.iter().map(|m| (&m.path, m.line));
        for (path, line) in imports.chain(mentions) {
            if let Some(Target::Item(to)) = tree.resolve(at, path, MAX_HOPS)
                && to != module.file
                && !tree.is_within(module.file, to)
            {
                let found = (line, path.join("::"));
                let edge = first.entry((module.file, to)).or_insert_with(|| found.clone());
                *edge = found.min(std::mem::take(edge));
            }
        }
    }
    let edge = |((from, to), (line, import))| Edge { from, to, line, import };
    first.into_iter().map(edge).collect()
}

impl Tree {
    /// What `path` leads to when code of the module `at` names it; `None` outside this crate.
    fn resolve(&self, at: usize, path: &[String], hops: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(at),
            "super" => Target::Module(self.modules[at].parent?),
            name => self.lookup(at, name, rest.is_empty(), hops)?,
        };
        // The rest of a path behind an item are its variants and associated items.
        while let (Target::Module(module), Some((name, behind))) = (target, rest.split_first()) {
            rest = behind;
            target = if name == "super" {
                Target::Module(self.modules[module].parent?)
            } else {
                // What is not found was written by a macro of that module.
                let found = self.lookup(module, name, rest.is_empty(), hops);
                found.unwrap_or(Target::Item(self.modules[module].file))
            };
        }
        Some(target)
    }

    /// What `name` means in a module. A module and an item may share a name: at the end of a path
    /// it is the item.
    fn lookup(&self, at: usize, name: &str, last: bool, hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let module = &self.modules[at];
        let item = module.items.contains(name).then_some(Target::Item(module.file));
        let child = module.children.get(name).map(|&child| Target::Module(child));
        let imported = || {
            let mut named = module.imports.iter().filter(|i| i.name.as_deref() == Some(name));
            named.find_map(|import| self.resolve(at, &import.path, hops))
        };
        let glob = || {
            let mut globs = module.imports.iter().filter(|import| import.name.is_none());
            globs.find_map(|import| match self.resolve(at, &import.path, hops)? {
                Target::Module(from) if from != at => self.lookup(from, name, last, hops),
                _ => None,
            })
        };
        let exported = || {
            let file = self.exported_macros.get(name).filter(|_| at == 0 && last)?;
            Some(Target::Item(*file))
        };
        if last {
            item.or_else(imported).or(child).or_else(glob).or_else(exported)
        } else {
            child.or(item).or_else(imported).or_else(glob)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;

    /// The edges of a crate as `from -> to`, by file name, and what makes them.
    fn edges_of(texts: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("src/{path}"),
            bytes: (*text).into(),
        };
        let files: Vec<SourceFile> = texts.iter().map(file).collect();
        let tree = Tree::read("src/lib.rs", &files).expect("the sources parse");
        let name = |file: usize| tree.files[file].path.trim_start_matches("src/");
        let show =
            |e: &Edge| format!("{}:{} -> {}: {}", name(e.from), e.line, name(e.to), e.import);
        edges(&tree).iter().map(show).collect()
    }

    #[test]
    fn a_name_in_use_is_an_import() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use std::fmt::Debug;\nuse crate::b::{self, B as Other};"),
            ("b.rs", "pub struct B;"),
        ]);
        assert_eq!(edges, ["a.rs:2 -> b.rs: crate::b::B"]);
    }

    #[test]
    fn a_path_in_code_is_an_import_in_macros_too() {
        let b = ("b.rs", "pub struct B; pub fn new() -> B { B }");
        for code in [
            "fn f() { super::b::new(); }",
            "struct S { b: Vec<crate::b::B> }",
            "impl super::b::B {}",
            "fn f() { assert_eq!(1, g(crate::b::new())); }",
            "use crate::b; fn f() { b::new(); }",
            "use crate::b as c; fn f() { println!(\"{}\", c::new()); }",
            "mod inner { fn f() { super::super::b::new(); } }",
            "use crate::b::*; fn f() { new(); }",
        ] {
            let edges = edges_of(&[("lib.rs", "mod a; mod b;"), ("a.rs", code), b]);
            assert_eq!(edges.len(), 1, "{code}: {edges:?}");
            assert!(edges[0].starts_with("a.rs:1 -> b.rs"), "{code}: {edges:?}");
        }
    }

    #[test]
    fn what_names_no_item_is_none() {
        for code in [
            "use crate::b;",
            "use crate::b::*;",
            "pub(in crate::b) struct S;",
            "/// See [`crate::b::B`].\nstruct S;",
            "fn f(b: u8) -> u8 { b }",
            "fn f() { ::b::new(); }",
        ] {
            let edges =
                edges_of(&[("lib.rs", "mod a; mod b;"), ("a.rs", code), ("b.rs", "pub struct B;")]);
            assert_eq!(edges, [""; 0], "{code}");
        }
    }

    #[test]
    fn test_code_does_not_count() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "#[cfg(test)] use crate::b::B;
                #[cfg(all(test, not(loom)))] mod tests { use crate::b::B; }
                #[cfg(test)] mod more;
                struct S;
                impl S { #[cfg(test)] fn f() { crate::b::B; } }",
            ),
            ("b.rs", "pub struct B;\n#[cfg(any(test, loom))] fn f() { crate::a::f(); }"),
        ]);
        assert_eq!(edges, ["b.rs:2 -> a.rs: crate::a::f"]);
    }

    #[test]
    fn a_reexport_is_followed_and_is_no_import_itself() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b; pub use b::B;"),
            ("a.rs", "use crate::B;"),
            ("b.rs", "mod c; pub(crate) use c::*;"),
            ("b/c.rs", "pub struct B;"),
        ]);
        assert_eq!(edges, ["a.rs:1 -> b/c.rs: crate::B"]);
    }

    #[test]
    fn a_reexport_that_its_file_uses_is_an_import() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::B;\nfn f() -> B { B }"),
            ("b.rs", "pub struct B;"),
        ]);
        assert_eq!(edges, ["a.rs:2 -> b.rs: B"]);
    }

    #[test]
    fn a_function_may_have_the_name_of_its_module() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::b;\nfn f() { b() }"),
            ("b.rs", "mod c; pub use c::b; pub fn d() {}"),
            ("b/c.rs", "pub fn b() { super::d() }"),
        ]);
        assert_eq!(edges, ["a.rs:1 -> b/c.rs: crate::b::b"]);
    }

    #[test]
    fn a_part_may_use_its_module() {
        let edges = edges_of(&[
            ("lib.rs", "mod a;\nfn f() { a::b::g() }"),
            ("a.rs", "pub mod b; pub mod c;\nuse b::B; pub struct A;"),
            ("a/b.rs", "use super::A; pub struct B; pub fn g() { super::c::h() }"),
            ("a/c.rs", "pub fn h() {}"),
        ]);
        assert_eq!(
            edges,
            [
                "lib.rs:2 -> a/b.rs: a::b::g",
                "a.rs:2 -> a/b.rs: b::B",
                "a/b.rs:1 -> a/c.rs: super::c::h"
            ]
        );
    }

    #[test]
    fn an_exported_macro_is_found_where_it_is_written() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() { crate::point!(); }"),
            ("b.rs", "#[macro_export] macro_rules! point { () => { $crate::a::f() } }"),
        ]);
        assert_eq!(edges, ["a.rs:1 -> b.rs: crate::point", "b.rs:1 -> a.rs: crate::a::f"]);
    }

    #[test]
    fn globs_in_a_circle_end() {
        let edges = edges_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use crate::b::*; fn f() { g(); nothing(); }"),
            ("b.rs", "pub use crate::a::*; pub fn g() {}"),
        ]);
        assert_eq!(edges, ["a.rs:1 -> b.rs: g"]);
    }
}
