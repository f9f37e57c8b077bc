//! `rnet keys check`.

use std::path::Path;

use rnet_keys::{EXPIRY_WARNING, KeysFile, utc_date};
use rnet_monitor::{Findings, Level};
use serde_json::json;

use super::args::CheckArgs;
use super::common::{host_json, keys_path, rights_text};
use super::show::expiry_text;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn run(context: &mut Context, args: &CheckArgs) -> Outcome {
    let path = keys_path(args.file.as_deref())?;
    let mut findings = Findings::default();
    let keys = examine(&path, &mut findings);
    let Findings(findings) = findings;
    let problems = findings.iter().filter(|f| f.level == Level::Problem).count();
    if context.json() {
        context.document(&json!({
            "file": path,
            "certificate": keys.as_ref().map(|keys| host_json(keys.certificate())),
            "findings": findings,
            "problems": problems,
        }))?;
    } else {
        context.heading(&path.display().to_string())?;
        context.findings(&findings)?;
    }
    if problems == 0 { Ok(()) } else { Err(Failure::AlreadyReported) }
}

fn examine(path: &Path, findings: &mut Findings) -> Option<KeysFile> {
    let keys = match KeysFile::load(path) {
        Ok(keys) => keys,
        Err(why) => {
            let text = why.to_string();
            let (what, advice) = text.rsplit_once("; ").unwrap_or((
                &text,
                "create keys with rnet keys init, or copy a keys file from the computer that has the authority",
            ));
            findings.problem("file", what, advice);
            return None;
        }
    };
    findings.ok("file", "only its owner may open it");
    let host = keys.certificate();
    let name = &host.name;
    findings.ok(
        "certificate",
        format!("host {name}, serial {}, from authority {}", host.serial, keys.authority()),
    );
    let renew = format!("on the computer that has the authority: rnet keys add-host {name}");
    let until = utc_date(host.not_after);
    let is_early = host.not_before > std::time::SystemTime::now();
    match host.expires_in() {
        None => findings.problem("dates", format!("expired on {until}"), &renew),
        Some(_) if is_early => findings.problem(
            "dates",
            format!("not valid before {}", utc_date(host.not_before)),
            "set the clock of this host",
        ),
        Some(left) if left < EXPIRY_WARNING => {
            let days = left.as_secs() / 86400;
            findings.note_with("dates", format!("expires in {days} days, on {until}"), &renew);
        }
        Some(_) => findings.ok("dates", format!("valid until {until}")),
    }
    match keys.revocations() {
        Err(why) => findings.problem("revocation", why.to_string(), "remove that file"),
        Ok(list) if list.contains(host) => {
            findings.problem("revocation", "the certificate is revoked", &renew);
        }
        Ok(list) => {
            let known = match list.number() {
                0 => "not in a revocation list: none is known".to_owned(),
                number => format!("not in revocation list {number}"),
            };
            findings.ok("revocation", known);
        }
    }
    findings.ok("rights", format!("the host may: {}", rights_text(&host.rights)));
    for token in keys.tokens() {
        let text = format!("token {}: {}, expires: {}", token.name, token.role, expiry_text(token));
        findings.note("token", text);
    }
    Some(keys)
}
