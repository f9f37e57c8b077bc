//! Checks the foreign packages of all lock files: advisories, sources and licences.
//!
//! `xtask/audited.tsv` lists each package and version that was compared with the advisories of RustSec. CI is
//! offline: it fails on a package that is not in the list. `cargo xtask audit DIR --write` compares all
//! packages with a clone of RustSec's database and writes the list. An advisory that applies stays a finding
//! until its line has a reason why it does no harm.

mod advisories;
pub mod licences;

use crate::{Finding, Outcome, SourceFile, output, source_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const LIST: &str = "xtask/audited.tsv";
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";
const REMEDY: &str =
    "clone https://github.com/rustsec/advisory-db and run `cargo xtask audit CLONE --write`";

/// A package of a lock file: its name and version.
type Package = (String, String);
/// The advisories of a package that apply to its version, each with the reason why it does no harm.
type Audited = BTreeMap<Package, BTreeMap<String, String>>;

/// Compares the lock files with the list, or with the database `DIR`; `--write` then updates the list.
pub fn run(root: &Path, args: &[String]) -> Option<Outcome> {
    let (database, write) = match args {
        [] => (None, false),
        [database] => (Some(database), false),
        [database, flag] if flag == "--write" => (Some(database), true),
        _ => return None,
    };
    Some(audit(root, database, write))
}

fn audit(root: &Path, database: Option<&String>, write: bool) -> Outcome {
    let files = source_files(root)?;
    let (packages, mut findings) = packages(&files);
    let list = files.iter().find(|file| file.path == LIST).and_then(SourceFile::text);
    let mut audited = parse(list.unwrap_or_default());
    if let Some(database) = database {
        audited = compare(Path::new(database), &packages, &audited)?;
    }
    if let Some(database) = database.filter(|_| write) {
        let git = ["-c", "safe.directory=*", "-C", database, "log", "-1", "--format=%H of %cs"];
        let commit = String::from_utf8_lossy(&output(Command::new("git").args(git))?).into_owned();
        std::fs::write(root.join(LIST), format(&audited, commit.trim()))
            .map_err(|error| format!("{LIST}: {error}"))?;
    }
    findings.extend(check(&packages, &audited));
    Ok((format!("{} packages", packages.len()), findings))
}

/// The foreign packages of all lock files, and those that do not come from crates.io with a checksum.
fn packages(files: &[SourceFile]) -> (BTreeSet<Package>, Vec<Finding>) {
    let (mut packages, mut findings) = (BTreeSet::new(), Vec::new());
    let is_lock = |file: &&SourceFile| file.path.rsplit('/').next() == Some("Cargo.lock");
    for file in files.iter().filter(is_lock) {
        for block in file.text().unwrap_or_default().split("[[package]]").skip(1) {
            let field = |name: &str| {
                let mut lines = block.lines().filter_map(|line| line.split_once(" = "));
                lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim_matches('"'))
            };
            let Some(source) = field("source") else { continue };
            let [name, version] = ["name", "version"].map(|n| field(n).unwrap_or_default());
            if source != INDEX || field("checksum").is_none() {
                let text = format!(
                    "{name} {version} is not a package of crates.io with a checksum: {source}"
                );
                findings.push(Finding::new(&file.path, text));
            }
            packages.insert((name.to_owned(), version.to_owned()));
        }
    }
    (packages, findings)
}

/// The list: name, version, and optionally advisory and reason.
fn parse(list: &str) -> Audited {
    let mut audited = Audited::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t').map(str::to_owned);
        let (Some(name), Some(version)) = (fields.next(), fields.next()) else { continue };
        let advisories = audited.entry((name, version)).or_default();
        if let Some(id) = fields.next() {
            advisories.insert(id, fields.next().unwrap_or_default());
        }
    }
    audited
}

fn format(audited: &Audited, commit: &str) -> String {
    let mut list = format!(
        "# Packages of the lock files, compared with the advisories of RustSec: commit\n# {commit}.\n\
         # Name, version, and each advisory that applies with the reason why it does no harm.\n\
         # Written by `cargo xtask audit CLONE --write`; reasons are added by hand.\n"
    );
    for ((name, version), advisories) in audited {
        if advisories.is_empty() {
            list += &format!("{name}\t{version}\n");
        }
        for (id, reason) in advisories {
            list += &format!("{name}\t{version}\t{id}\t{reason}\n");
        }
    }
    list
}

/// Compares packages with the database; reasons are those of the earlier list.
fn compare(
    database: &Path,
    packages: &BTreeSet<Package>,
    earlier: &Audited,
) -> Result<Audited, String> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*", "-C"]).arg(database).args(args);
        output(&mut command).map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let paths = git(&["ls-tree", "-r", "--name-only", "HEAD", "crates"])?;
    if paths.is_empty() {
        return Err(format!("{} has no advisory in crates/", database.display()));
    }
    let mut audited: Audited = packages.iter().map(|p| (p.clone(), BTreeMap::new())).collect();
    for path in paths.lines() {
        let name = path.split('/').nth(1).unwrap_or_default();
        if !packages.iter().any(|package| package.0 == name) {
            continue;
        }
        let text = git(&["show", &format!("HEAD:{path}")])?;
        let advisory =
            advisories::Advisory::parse(&text).map_err(|why| format!("{path}: {why}"))?;
        for (package, found) in audited.iter_mut().filter(|(package, _)| package.0 == name) {
            if advisory.applies_to(&package.1).map_err(|why| format!("{path}: {why}"))? {
                let reason = earlier.get(package).and_then(|known| known.get(&advisory.id));
                found.insert(advisory.id.clone(), reason.cloned().unwrap_or_default());
            }
        }
    }
    Ok(audited)
}

fn check(packages: &BTreeSet<Package>, audited: &Audited) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package @ (name, version) in packages {
        let place = format!("{name} {version}");
        let Some(advisories) = audited.get(package) else {
            findings.push(Finding::new(place, format!("not compared with advisories: {REMEDY}")));
            continue;
        };
        for (id, _) in advisories.iter().filter(|(_, reason)| reason.is_empty()) {
            let text = format!(
                "https://rustsec.org/advisories/{id}.html applies: update it, or write in {LIST} why it does no harm"
            );
            findings.push(Finding::new(&place, text));
        }
    }
    if packages.is_empty() {
        findings.push(Finding::new(
            "Cargo.lock",
            "no lock file has a foreign package, so nothing was checked",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(source: &str, checksum: &str) -> Vec<SourceFile> {
        let text = format!(
            "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"time\"\n\
             version = \"0.1.45\"\nsource = \"{source}\"\n{checksum}dependencies = [\n \"libc\",\n]\n"
        );
        vec![SourceFile { path: "fuzz/Cargo.lock".into(), bytes: text.into_bytes() }]
    }

    fn texts(list: &str) -> Vec<String> {
        let (packages, _) = packages(&lock(INDEX, "checksum = \"00\"\n"));
        check(&packages, &parse(list)).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn each_package_must_be_in_the_list_with_its_version() {
        assert_eq!(texts("# head\ntime\t0.1.45\n"), [""; 0]);
        for list in ["", "time\t0.1.44\n", "times\t0.1.45\n", "#time\t0.1.45\n"] {
            assert!(texts(list)[0].starts_with("not compared"), "{list:?}");
        }
        assert_eq!(check(&BTreeSet::new(), &Audited::new()).len(), 1, "nothing was checked");
    }

    #[test]
    fn an_advisory_needs_a_reason() {
        assert_eq!(texts("time\t0.1.45\tRUSTSEC-1\tnever called\n"), [""; 0]);
        for list in
            ["time\t0.1.45\tRUSTSEC-1\n", "time\t0.1.45\tA\twhy\ntime\t0.1.45\tRUSTSEC-1\t\n"]
        {
            let texts = texts(list);
            assert!(texts.len() == 1 && texts[0].contains("RUSTSEC-1.html applies"), "{texts:?}");
        }
    }

    #[test]
    fn packages_come_from_crates_io_with_a_checksum() {
        assert_eq!(packages(&lock(INDEX, "checksum = \"00\"\n")).1, []);
        for files in [lock(INDEX, ""), lock("git+https://example.com/time", "checksum = \"00\"\n")]
        {
            let (packages, findings) = packages(&files);
            assert_eq!((packages.len(), findings.len()), (1, 1), "own crates have no source");
        }
    }

    /// A database in a git repository of its own: one advisory, for versions before 0.2.23.
    #[test]
    fn a_vulnerable_version_is_found_in_the_database_and_its_reason_is_kept() {
        let dir = std::env::temp_dir().join(format!("rnet-audit-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("crates/time")).unwrap();
        let advisory =
            "```toml\n[advisory]\nid = \"RUSTSEC-1\"\n[versions]\npatched = [\">= 0.2.23\"]\n```\n";
        std::fs::write(dir.join("crates/time/RUSTSEC-1.md"), advisory).unwrap();
        let user = ["-c", "user.name=a", "-c", "user.email=a@b"];
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "a"]] {
            output(Command::new("git").arg("-C").arg(&dir).args(user).args(args)).unwrap();
        }
        let (mut packages, _) = packages(&lock(INDEX, "checksum = \"00\"\n"));
        packages.insert(("time".into(), "0.3.0".into()));
        let audited = compare(&dir, &packages, &Audited::new()).unwrap();
        assert_eq!(
            format(&audited, "c").lines().skip(4).collect::<Vec<_>>(),
            ["time\t0.1.45\tRUSTSEC-1\t", "time\t0.3.0"]
        );
        assert_eq!(check(&packages, &audited).len(), 1);
        let earlier =
            parse("time\t0.1.45\tRUSTSEC-1\tnever called\ntime\t0.3.0\tRUSTSEC-1\tearlier\n");
        let audited = compare(&dir, &packages, &earlier).unwrap();
        assert_eq!(check(&packages, &audited), []);
        assert!(!format(&audited, "c").contains("earlier"), "an advisory that no longer applies");
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(compare(&dir, &packages, &earlier).is_err(), "a folder without a database");
    }
}
