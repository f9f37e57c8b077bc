//! The hash of the message path: `cargo xtask message-path`. A report of the comparison contains the hash of
//! the measured sources, and `cargo xtask tidy` fails if the newest report has another one.
//!
//! The hash covers tokens. Comments, documentation, white space, trailing commas, lints and test code do not
//! change it.

use crate::syntax::{attributes, impl_attributes, is_test};
use crate::{Finding, SourceFile};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use xxhash_rust::xxh3::Xxh3;

/// Path prefixes of the code that sends, wakes, waits, receives, matches and stores messages on one host.
const PATHS: &[&str] = &[
    "crates/rnet-core/src/counters.rs",
    "crates/rnet-core/src/hist.rs",
    "crates/rnet-core/src/limits.rs",
    "crates/rnet-core/src/meta.rs",
    "crates/rnet-core/src/qos.rs",
    "crates/rnet-core/src/time.rs",
    "crates/rnet-node/src/",
    "crates/rnet-ring/src/",
    "crates/rnet-shm/src/",
];
/// Files in these paths that serve other purposes.
const EXCEPTIONS: &[&str] = &[
    "crates/rnet-node/src/handle.rs",
    "crates/rnet-node/src/log",
    "crates/rnet-node/src/msgs",
    "crates/rnet-node/src/node_time.rs",
    "crates/rnet-node/src/protobuf",
    "crates/rnet-node/src/remote_nodes.rs",
    "crates/rnet-node/src/sim_clock.rs",
    "crates/rnet-node/src/typed.rs",
    "crates/rnet-node/src/typed/any_subscription.rs",
    "crates/rnet-node/src/typed/batch.rs",
    "crates/rnet-node/src/typed/callback.rs",
    "crates/rnet-node/src/typed/d",
    "crates/rnet-node/src/typed/rate.rs",
    "crates/rnet-node/src/typed/stream.rs",
    "crates/rnet-node/src/typed/timer.rs",
    "crates/rnet-node/src/typed/wait",
    "crates/rnet-ring/src/state/",
    "crates/rnet-shm/src/domain/death_notes.rs",
    "crates/rnet-shm/src/os/priority.rs",
    "crates/rnet-shm/src/channel/observe.rs",
    "crates/rnet-shm/src/domain/dead_node_leftovers.rs",
    "crates/rnet-shm/src/domain/role.rs",
    "crates/rnet-shm/src/state",
    "crates/rnet-shm/src/os/tcp.rs",
];
/// Attributes that do not change the machine code.
const SILENT: &[&str] = &["allow", "deprecated", "doc", "expect", "must_use", "warn"];

const RESULTS: &str = "bench/results/";
const NEUTRAL: &str = "bench/results/neutral.toml";
/// The line of REPORT.md that contains the hash; bench/report/head.py writes it.
const LINE: &str = "message path: ";

/// The hash of the product code on the message path, in 16 hexadecimal digits.
pub fn hash(files: &[SourceFile]) -> Result<String, String> {
    let mut listed = PATHS.iter().chain(EXCEPTIONS);
    if let Some(gone) = listed.find(|l| !files.iter().any(|f| f.path.starts_with(**l))) {
        return Err(format!("{gone} does not exist: correct xtask/src/message_path.rs"));
    }
    let is_in = |list: &[&str], file: &SourceFile| list.iter().any(|l| file.path.starts_with(l));
    let mut hash = Xxh3::new();
    for file in files.iter().filter(|f| is_in(PATHS, f) && !is_in(EXCEPTIONS, f)) {
        if file.path.ends_with("/tests.rs") {
            continue;
        }
        let text = file.text().unwrap_or_default();
        let mut syntax = syn::parse_file(text).map_err(|e| format!("{}: {e}", file.path))?;
        ProductCode.visit_file_mut(&mut syntax);
        add(syntax.into_token_stream(), &mut hash);
    }
    Ok(format!("{:016x}", hash.digest()))
}

/// Removes everything that does not change the machine code.
struct ProductCode;

impl VisitMut for ProductCode {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_test(attributes(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_test(attributes(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| !is_test(impl_attributes(item)));
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.retain(|a| !SILENT.iter().any(|name| a.path().is_ident(name)));
    }
}

fn add(tokens: TokenStream, hash: &mut Xxh3) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                hash.update(format!("{:?}(", group.delimiter()).as_bytes());
                add(group.stream(), hash);
                hash.update(b")");
            }
            // rustfmt adds a trailing comma to a list with several lines.
            TokenTree::Punct(comma) if comma.as_char() == ',' && tokens.peek().is_none() => {}
            token => hash.update(format!("{token} ").as_bytes()),
        }
    }
}

/// The newest full report must have measured the message path `now`, unless the last line of neutral.toml
/// states that the changes since then are neutral.
pub fn check(now: &str, files: &[SourceFile]) -> Option<Finding> {
    let Some((date, report)) = files.iter().filter_map(full_report).max() else {
        return Some(Finding::new(RESULTS, "no YYYY-MM-DD/REPORT.md with the workload `latency`"));
    };
    let measured = report.lines().find_map(|line| line.strip_prefix(LINE)).unwrap_or("(not named)");
    let neutral = files.iter().find(|f| f.path == NEUTRAL).and_then(SourceFile::text);
    let last = neutral.and_then(|text| text.lines().last()?.strip_prefix(&format!("{now} = \"")));
    // A line with an older date refers to an older report; 13 is the length without a measurement.
    let is_neutral = last.is_some_and(|value| value.get(..10) >= Some(date) && value.len() > 13);
    let text = format!(
        "measured the message path {measured}, but the sources have {now}: run `make bench \
         BENCH_OUT={RESULTS}$(date +%F)` (about an hour) and commit the folder; or, if a measurement shows that the \
         changes since this report are neutral, append to {NEUTRAL}: {now} = \"YYYY-MM-DD: the measurement\""
    );
    let is_good = measured == now || is_neutral;
    (!is_good).then(|| Finding::new(format!("{RESULTS}{date}/REPORT.md"), text))
}

/// Date and text of a full report: the name of its folder is a date without a suffix.
fn full_report(file: &SourceFile) -> Option<(&str, &str)> {
    let date = file.path.strip_prefix(RESULTS)?.strip_suffix("/REPORT.md")?;
    let text = file.text()?;
    (date.len() == 10 && text.contains("\n`latency`: ")).then_some((date, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), bytes: text.into() }
    }

    /// The hash of a tree in which one file on the path, and the files beside it, have these texts.
    fn hash_of(text: &str, beside: &str) -> String {
        let listed = PATHS.iter().chain(EXCEPTIONS).map(|start| file(start, ""));
        let ours = file("crates/rnet-shm/src/channel/pool.rs", text);
        let others =
            ["crates/rnet-shm/src/state/b.rs", "crates/rnet-shm/src/channel/pool/tests.rs"];
        let others = others.map(|path| file(path, beside));
        hash(&listed.chain(others).chain([ours]).collect::<Vec<_>>()).expect("the sources parse")
    }

    #[test]
    fn only_product_code_changes_the_hash() {
        let code = "struct A { b: u8 } impl A { fn c(&self, d: u8) -> u8 { f(self.b, d) } }";
        for same in [
            "//! Page.\nstruct A {\n/// Byte.\nb: u8,\n} impl A { fn c(&self, d: u8) -> u8 { f(self.b, d) } }",
            "struct A { b: u8 } #[allow(x)] impl A { fn c(&self, d: u8,) -> u8 { /* Sum. */ f(\nself.b,\nd,\n) } }",
            "struct A { b: u8 } impl A { fn c(&self, d: u8) -> u8 { f(self.b, d) } #[cfg(test)] fn e() {} }
             #[cfg(test)] mod tests { fn g() {} }",
        ] {
            assert_eq!(hash_of(same, "fn h() {}"), hash_of(code, ""), "{same}");
        }
        for (was, is) in
            [("(self.b, d)", "(d, self.b)"), ("u8 }", "u16 }"), ("impl", "#[repr(C)] impl")]
        {
            assert_ne!(hash_of(&code.replacen(was, is, 1), ""), hash_of(code, ""), "{is}");
        }
        assert!(
            hash(&[])
                .is_err_and(|error| error.starts_with("crates/rnet-core/src/counters.rs does"))
        );
    }

    #[test]
    fn the_newest_full_report_or_the_last_neutral_line_must_have_the_hash() {
        const NOW: &str = "0123456789abcdef";
        let found = |measured: &str, neutral: &str| {
            let report = |folder: &str, hash: &str, workload: &str| {
                let text = format!("# Report\n\n{LINE}{hash}\n\n`{workload}`: one way\n");
                file(&format!("bench/results/{folder}/REPORT.md"), &text)
            };
            let before = report("2026-01-02", NOW, "latency");
            let after =
                [report("2026-03-05", NOW, "state"), report("2026-03-06-hosts", NOW, "latency")];
            let newest =
                [report("2026-03-04", measured, "latency"), file(NEUTRAL, neutral), before];
            let finding = check(NOW, &newest.into_iter().chain(after).collect::<Vec<_>>());
            finding.map(|f| format!("{}: {}", f.place, f.text))
        };
        let line = |hash: &str, date: &str| format!("{hash} = \"{date}: send 210.00 as before\"\n");
        let (now, other) = (line(NOW, "2026-03-04"), line("fedcba9876543210", "2026-03-04"));
        assert_eq!(found(NOW, &other), None);
        assert_eq!(found("x", &format!("# Why.\n{other}{now}")), None);
        let older = line(NOW, "2026-03-03");
        let bare = format!("{NOW} = \"2026-03-04: \"\n");
        for neutral in ["", &format!("{now}{other}"), &older, &bare] {
            let text = found("x", neutral).expect("another hash");
            let start = "bench/results/2026-03-04/REPORT.md: measured the message path x, but the sources have 0123";
            assert!(text.starts_with(start), "{text}");
            assert!(
                text.contains("run `make bench BENCH_OUT=bench/results/$(date +%F)`"),
                "{text}"
            );
        }
        assert!(check(NOW, &[]).is_some());
    }
}
