//! `rnet-link start`: nodes call it when they open.

use rnet_net::config::{Config, Mode};

use crate::args::Options;
use crate::domain::Domain;
use crate::last_node::FIRST_NODE_TIMEOUT;
use crate::{Outcome, detach, error_text, print_line};

pub fn start(options: &Options) -> Outcome {
    // Pipes and sockets of the starting node would stay open while the link runs.
    rnet_shm::os::process::close_inherited_fds();
    let config = Config::load(&options.overrides()).map_err(error_text)?;
    config.check_insecure()?;
    if config.mode == Mode::Off {
        return print_line(format_args!(
            "the network is off ({}): no link is started",
            config.mode_source
        ));
    }
    let domain = Domain::open(options)?;
    // A stopped link holds the role and does nothing. A new process replaces it.
    let link = domain.link.responsive_holder().map_err(error_text)?;
    let standby = domain.standby.responsive_holder().map_err(error_text)?;
    if let (Some(link), Some(standby)) = (link, standby) {
        return print_line(format_args!(
            "process {link} is the link of this host, process {standby} is the standby"
        ));
    }
    let (pid, id) = (detach::spawn(options)?, domain.location.id());
    match link {
        Some(link) => print_line(format_args!(
            "process {link} is the link of this host; started process {pid} as its standby"
        )),
        None => print_line(format_args!(
            "started the link of domain {id}, process {pid}; it exits with the last node of the domain, or after {} s \
             without a node",
            FIRST_NODE_TIMEOUT.as_secs()
        )),
    }
}
