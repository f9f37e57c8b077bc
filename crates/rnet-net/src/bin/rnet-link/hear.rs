//! `rnet-link hear`: whether multicast comes and goes, for `rnet doctor`.

use std::time::Duration;

use rnet::inspect::Location;
use rnet_net::config::{Config, Listed};
use rnet_net::zenoh::ask_who_is_there;
use serde_json::json;

use crate::args::Options;
use crate::{Outcome, print_line, told};

/// A link that misses others asks twice a second.
const LISTEN: Duration = Duration::from_secs(2);

pub fn hear(options: &Options) -> Outcome {
    let config = Config::load(&options.given()).map_err(told)?;
    let domain = options.domain.as_ref().map(|id| id.as_str());
    let location =
        Location::new(domain, options.dir.clone(), options.group.clone()).map_err(told)?;
    let heard = ask_who_is_there(location.id(), &Listed::values(&config.interfaces), LISTEN)
        .map_err(|error| format!("cannot listen for multicast: {error}"))?;
    let document = json!({
        "groups": heard.groups,
        "asked_by": heard.asked_by,
        "answered_by": heard.answered_by,
    });
    print_line(format_args!("{document:#}"))
}
