//! `rnet keys init`, `add-host` and `revoke`.

use std::path::{Path, PathBuf};

use rnet_keys::{Authority, HostCertificate, HostRequest, KeysFile, Right, Rights};
use serde_json::{Value, json};

use super::args::{AddHostArgs, AuthorityArg, InitArgs, RevokeArgs, RightsArgs};
use super::common::{failed, host_json, keys_path, rights_text, this_host_keys};
use crate::context::Context;
use crate::failure::{Failure, Outcome};

pub fn init(context: &mut Context, args: &InitArgs) -> Outcome {
    let this_host = HostRequest {
        name: args.name.clone().map_or_else(this_host_name, Ok)?,
        rights: Rights::all(),
        days: args.validity.days,
        addresses: args.validity.addresses.clone(),
    };
    let created = create(&args.authority, &this_host)?;
    match created.host {
        Some(_) => created.print(context, &[]),
        None => Err(Failure::Failed(format!(
            "{} already has an authority and this host its keys file; add other hosts with rnet keys add-host NAME",
            args.authority.dir()?.display()
        ))),
    }
}

pub fn add_host(context: &mut Context, args: &AddHostArgs) -> Outcome {
    let request = HostRequest {
        name: args.name.clone(),
        rights: args.rights.rights()?,
        days: args.validity.days,
        addresses: args.validity.addresses.clone(),
    };
    let this_host = HostRequest {
        name: this_host_name()?,
        rights: Rights::all(),
        days: 365,
        addresses: Vec::new(),
    };
    let mut created = match Authority::open(&args.authority.dir()?).map_err(failed)? {
        // Its hosts may be managed on a computer that is none of them.
        Some(authority) => Created { authority, is_new: false, host: None },
        None => create(&args.authority, &this_host)?,
    };
    let authority = &mut created.authority;
    let own = this_host_keys()?.filter(|keys| keys.authority() == authority.id());
    // A host has its own keys at once; those of another are copied there.
    let own_path = own.filter(|keys| keys.certificate().name == request.name);
    let output = args.output.clone().or_else(|| own_path.map(|keys| keys.path().to_owned()));
    let output = output.unwrap_or_else(|| PathBuf::from(format!("{}.keys.pem", request.name)));
    let issued = authority.add_host(&request, &output).map_err(failed)?;
    spread(context, authority)?;
    created.print(context, &[(issued, output)])
}

pub fn revoke(context: &mut Context, args: &RevokeArgs) -> Outcome {
    let mut authority = args.authority.open()?;
    let list = authority.revoke(&args.host).map_err(failed)?;
    let is_spread = spread(context, &authority)?;
    if context.json() {
        let document = json!({"revoked": args.host, "list": list.number(), "is_spread": is_spread});
        return context.document(&document);
    }
    context.line(format_args!("revoked {}: list {}", args.host, list.number()))?;
    if !is_spread {
        context.note(
            "this computer is not a host of the robot: run rnet keys export --revocations -o keys.pem.crl, and copy \
             the file beside the keys file of one host; it gives the list to the others",
        );
    }
    Ok(())
}

/// The name of this host, as its link has it.
fn this_host_name() -> Outcome<String> {
    if let Some(name) = std::env::var("RNET_HOST").ok().filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    let of_file = rnet_keys::configured_host(&|name| std::env::var_os(name));
    let of_file = of_file.map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(of_file.unwrap_or_else(rnet_keys::this_host))
}

/// An authority, and what was created.
struct Created {
    authority: Authority,
    is_new: bool,
    /// The certificate of this host and its keys file, if they are new.
    host: Option<(HostCertificate, PathBuf)>,
}

/// Creates the authority and the keys file of this host, each unless it exists.
fn create(arg: &AuthorityArg, this_host: &HostRequest) -> Outcome<Created> {
    let dir = arg.dir()?;
    let existing = Authority::open(&dir).map_err(failed)?;
    let own = this_host_keys()?;
    if let (None, Some(keys)) = (&existing, &own) {
        return Err(Failure::Failed(format!(
            "the keys of this host ({}) are from authority {}, which is not in {}; add hosts on the computer that has \
             it, or give its folder with --authority; for a new authority, remove that file first",
            keys.path().display(),
            keys.authority(),
            dir.display()
        )));
    }
    let (mut authority, is_new) = match existing {
        Some(authority) => (authority, false),
        None => Authority::init(&dir).map_err(failed)?,
    };
    let host = match own {
        Some(_) => None,
        None => {
            let path = keys_path(None)?;
            let issued = authority.add_host(this_host, &path).map_err(failed)?;
            Some((issued, path))
        }
    };
    Ok(Created { authority, is_new, host })
}

impl Created {
    /// Prints what was created, then the hosts that were added.
    fn print(&self, context: &mut Context, added: &[(HostCertificate, PathBuf)]) -> Outcome {
        let id = self.authority.id();
        if context.json() {
            let hosts = self.host.iter().chain(added).map(|(host, path)| file_json(host, path));
            return context.document(&json!({
                "authority": id,
                "is_new": self.is_new,
                "keys_files": hosts.collect::<Vec<_>>(),
            }));
        }
        if self.is_new {
            let date = rnet_keys::utc_date(self.authority.not_after());
            context.line(format_args!("created authority {id}, valid until {date}"))?;
        }
        if let Some((host, path)) = &self.host {
            print_file(context, "this host", host, path)?;
        }
        for (host, path) in added {
            let is_own = rnet_keys::default_keys_path().is_some_and(|own| own == *path);
            print_file(context, if is_own { "this host" } else { "host" }, host, path)?;
            if !is_own {
                context.line(format_args!(
                    "copy this file to {} as /etc/rnet/keys.pem or ~/.config/rnet/keys.pem (mode 0600), and delete it \
                     here",
                    host.name
                ))?;
            }
        }
        Ok(())
    }
}

fn print_file(context: &mut Context, what: &str, host: &HostCertificate, path: &Path) -> Outcome {
    context.line(format_args!(
        "wrote {}: {what} {}, valid until {}, rights: {}",
        path.display(),
        host.name,
        rnet_keys::utc_date(host.not_after),
        rights_text(&host.rights)
    ))
}

fn file_json(host: &HostCertificate, path: &Path) -> Value {
    let mut document = host_json(host);
    document["file"] = json!(path);
    document
}

/// Stores the revocation list beside this host's keys file, from where its links spread it. Returns whether
/// this host has keys of the authority.
fn spread(context: &Context, authority: &Authority) -> Outcome<bool> {
    let own: Option<KeysFile> = this_host_keys()?.filter(|keys| keys.authority() == authority.id());
    let Some(keys) = own else { return Ok(false) };
    let list = authority.revocations().map_err(failed)?;
    if list.number() > 0 {
        keys.save_revocations(&list).map_err(failed)?;
        if list.contains(keys.certificate()) {
            context.note(&format!(
                "the certificate of this host is revoked; renew it with rnet keys add-host {}",
                keys.certificate().name
            ));
        }
    }
    Ok(true)
}

impl RightsArgs {
    /// The given rights; all if none is given.
    fn rights(&self) -> Outcome<Rights> {
        let given = [
            (Right::Publish, &self.publish),
            (Right::Subscribe, &self.subscribe),
            (Right::Call, &self.call),
            (Right::Drive, &self.drive),
            (Right::Read, &self.read),
            (Right::Write, &self.write),
        ];
        let mut rights = Rights::default();
        for (right, patterns) in given {
            for text in patterns {
                let pattern = right.pattern(text);
                let invalid = |why| Failure::Usage(format!("--{right}: {why}"));
                rights.allow(right, pattern.map_err(invalid)?);
            }
        }
        Ok(if rights == Rights::default() { Rights::all() } else { rights })
    }
}
