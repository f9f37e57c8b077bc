//! `rnet keys …`: certificates and rights of hosts, tokens of browsers. `make demo` builds without (feature
//! `keys`), and the command line is the same.

pub mod args;
#[cfg(feature = "keys")]
mod check;
#[cfg(feature = "keys")]
mod issue;
#[cfg(feature = "keys")]
mod show;
#[cfg(feature = "keys")]
mod token;

use args::KeysCommand;

use crate::context::Context;
use crate::failure::Outcome;

#[cfg(not(feature = "keys"))]
pub fn run(_: &mut Context, _: KeysCommand) -> Outcome {
    crate::failure::not_built_in("rnet keys")
}

#[cfg(feature = "keys")]
pub fn run(context: &mut Context, command: KeysCommand) -> Outcome {
    match command {
        KeysCommand::Init(args) => issue::init(context, &args),
        KeysCommand::AddHost(args) => issue::add_host(context, &args),
        KeysCommand::Export(args) => show::export(context, &args),
        KeysCommand::Revoke(args) => issue::revoke(context, &args),
        KeysCommand::List(args) => show::list(context, &args),
        KeysCommand::Check(args) => check::run(context, &args),
        KeysCommand::Token(args) => token::run(context, &args),
    }
}

#[cfg(feature = "keys")]
mod common {
    use std::path::{Path, PathBuf};

    use rnet_keys::{Authority, HostCertificate, KeyError, KeysFile, Right, Rights};
    use serde_json::{Value, json};

    use super::args::AuthorityArg;
    use crate::failure::{Failure, Outcome};

    /// A failure with the message of a key error.
    pub fn failed(error: KeyError) -> Failure {
        Failure::Failed(error.to_string())
    }

    const NO_HOME: &str = "neither HOME nor XDG_CONFIG_HOME is set";

    impl AuthorityArg {
        /// The folder of the authority.
        pub fn dir(&self) -> Outcome<PathBuf> {
            let default = || Some(rnet_keys::user_config_dir()?.join("authority"));
            let dir = self.authority.clone().or_else(default);
            dir.ok_or_else(|| {
                Failure::Usage(format!("{NO_HOME}; give the folder with --authority"))
            })
        }

        /// The authority.
        pub fn open(&self) -> Outcome<Authority> {
            let dir = self.dir()?;
            Authority::open(&dir).map_err(failed)?.ok_or_else(|| {
                Failure::Failed(format!(
                    "no authority in {}; give its folder with --authority, or create one with rnet keys init",
                    dir.display()
                ))
            })
        }
    }

    /// The path of this host's keys file; it may not exist.
    pub fn keys_path(given: Option<&Path>) -> Outcome<PathBuf> {
        let path = given.map(Path::to_owned).or_else(rnet_keys::new_keys_path);
        path.ok_or_else(|| Failure::Usage(format!("{NO_HOME}; set the keys file with RNET_KEYS")))
    }

    /// The keys file of this host, if it exists.
    pub fn this_host_keys() -> Outcome<Option<KeysFile>> {
        match rnet_keys::default_keys_path().filter(|path| path.symlink_metadata().is_ok()) {
            None => Ok(None),
            Some(path) => KeysFile::load(&path).map(Some).map_err(failed),
        }
    }

    /// The rights as one text: `all`, or `publish /arm/**, call /**`.
    pub fn rights_text(rights: &Rights) -> String {
        if *rights == Rights::all() {
            return "all".to_owned();
        }
        let of = |right| rights.patterns(right).map(move |pattern| format!("{right} {pattern}"));
        let text = Right::ALL.into_iter().flat_map(of).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "none".to_owned() } else { text }
    }

    /// What a certificate says, as JSON. It contains no secret.
    pub fn host_json(host: &HostCertificate) -> Value {
        let rights = Right::ALL.into_iter().map(|right| {
            (right.to_string(), json!(host.rights.patterns(right).collect::<Vec<_>>()))
        });
        json!({
            "host": host.name,
            "serial": host.serial,
            "valid_from": rnet_keys::utc_date(host.not_before),
            "expires": rnet_keys::utc_date(host.not_after),
            "rights": Value::Object(rights.collect()),
        })
    }
}
