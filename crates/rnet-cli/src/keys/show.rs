//! `rnet keys list` and `export`.

use std::io::Write;
use std::path::Path;

use rnet_keys::{Authority, HostCertificate, KeysFile, Revocations, Token, utc_date};
use serde_json::{Value, json};

use super::args::{AuthorityArg, ExportArgs};
use super::common::{failed, host_json, rights_text, this_host_keys};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::table;

pub fn list(context: &mut Context, args: &AuthorityArg) -> Outcome {
    let dir = args.dir()?;
    let authority = Authority::open(&dir).map_err(failed)?;
    let keys = this_host_keys()?;
    if authority.is_none() && keys.is_none() {
        return Err(no_keys(&dir));
    }
    let (hosts, list) = match &authority {
        None => (Vec::new(), Revocations::default()),
        Some(authority) => {
            (authority.hosts().map_err(failed)?, authority.revocations().map_err(failed)?)
        }
    };
    let tokens = keys.as_ref().map_or(&[][..], KeysFile::tokens);
    if context.json() {
        return context.document(&json!({
            "authority": authority.as_ref().map(Authority::id),
            "hosts": hosts.iter().map(|host| with_status(host, &list)).collect::<Vec<_>>(),
            "revoked": list.iter().map(|(serial, since)| {
                json!({"serial": serial, "since": utc_date(since)})
            }).collect::<Vec<_>>(),
            "keys_file": keys.as_ref().map(KeysFile::path),
            "tokens": tokens.iter().map(token_json).collect::<Vec<_>>(),
        }));
    }
    if let Some(authority) = &authority {
        context.line(format_args!("authority {} in {}", authority.id(), dir.display()))?;
        let row = |host: &HostCertificate| {
            let words = [&host.name, &host.serial, &utc_date(host.not_after), status(host, &list)];
            let words = words.map(|word: &str| word.to_owned());
            [&words[..], &[rights_text(&host.rights)]].concat()
        };
        let rows: Vec<_> = hosts.iter().map(row).collect();
        table::print(context, &["HOST", "SERIAL", "EXPIRES", "STATUS", "RIGHTS"], &rows)?;
    }
    if let Some(keys) = &keys {
        context.line(format_args!(
            "keys of this host, {}, from authority {}, in {}",
            keys.certificate().name,
            keys.authority(),
            keys.path().display()
        ))?;
        let row =
            |token: &Token| vec![token.name.clone(), token.role.to_string(), expiry_text(token)];
        let rows: Vec<_> = tokens.iter().map(row).collect();
        table::print(context, &["TOKEN", "ROLE", "EXPIRES"], &rows)?;
    }
    Ok(())
}

fn status(host: &HostCertificate, list: &Revocations) -> &'static str {
    match host.expires_in() {
        _ if list.contains(host) => "revoked",
        None => "expired",
        Some(left) if left < rnet_keys::EXPIRY_WARNING => "expires soon",
        Some(_) => "valid",
    }
}

fn with_status(host: &HostCertificate, list: &Revocations) -> Value {
    let mut document = host_json(host);
    document["status"] = status(host, list).into();
    document
}

/// The last day of a token.
pub fn expiry_text(token: &Token) -> String {
    let date = token.expires.map_or_else(|| "never".to_owned(), utc_date);
    if token.has_expired() { format!("{date} (expired)") } else { date }
}

/// A token as JSON, without its hash.
fn token_json(token: &Token) -> Value {
    json!({"name": token.name, "role": token.role, "expires": token.expires.map(utc_date)})
}

fn no_keys(dir: &Path) -> Failure {
    Failure::Failed(format!(
        "no authority in {} and no keys file of this host; create both with rnet keys init, or copy a keys file to \
         this host",
        dir.display()
    ))
}

pub fn export(context: &mut Context, args: &ExportArgs) -> Outcome {
    let dir = args.authority.dir()?;
    let (certificate, list) = match Authority::open(&dir).map_err(failed)? {
        Some(authority) => (authority.certificate_pem(), authority.revocations()),
        None => match this_host_keys()? {
            Some(keys) => (keys.authority_pem().to_owned(), keys.revocations()),
            None => return Err(no_keys(&dir)),
        },
    };
    let text = match args.revocations {
        false => certificate,
        true => list
            .map_err(failed)?
            .pem()
            .ok_or_else(|| Failure::Failed("no certificate has been revoked yet".to_owned()))?,
    };
    if context.json() && args.output.is_none() {
        return context.document(&json!({"pem": text}));
    }
    match &args.output {
        None => Ok(context.out().write_all(text.as_bytes())?),
        Some(path) => {
            let failed = |why| Failure::Failed(format!("cannot write {}: {why}", path.display()));
            std::fs::write(path, text).map_err(failed)?;
            if context.json() {
                return context.document(&json!({"file": path}));
            }
            context.line(format_args!("wrote {}", path.display()))
        }
    }
}
