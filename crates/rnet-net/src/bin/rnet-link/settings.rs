//! `rnet-link config`: the effective settings from flags, environment and file.

use rnet_net::config::{Config, Endpoint, WithSource};
use serde_json::json;

use crate::args::Options;
use crate::{Outcome, error_text, print_line};

pub fn show(options: &Options) -> Outcome {
    let config = Config::load(&options.overrides()).map_err(error_text)?;
    let texts = |list: &[Endpoint]| list.iter().map(Endpoint::to_string).collect::<Vec<_>>();
    let document = json!({
        "version": rnet::VERSION,
        "mode": config.mode.to_string(),
        "mode_from": config.mode_source.to_string(),
        "file": config.file,
        "host": config.host,
        "interfaces": WithSource::values(&config.interfaces),
        "listen": texts(&WithSource::values(&config.listen)),
        "connect": texts(&config.connect),
        "lost_after_ms": config.lost_after.as_millis() as u64,
        "insecure": config.insecure,
        "keys": config.keys,
        "refused": config.check_insecure().err(),
        "rules": config.rules.len(),
        "topics": config.topics.len(),
    });
    print_line(format_args!("{document:#}"))
}
