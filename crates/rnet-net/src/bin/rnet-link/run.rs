//! `rnet-link run`: waits as standby, then links.

use std::io::Error;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::bridge::HeldRole;
use rnet_keys::KeysFile;
use rnet_net::config::{Config, Mode, WithSource};
use rnet_net::link::{Link, LinkError, LinkFailure, LinkOptions};
use rnet_net::secure::{SecureNetwork, WatchedFile};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence};

use crate::address_monitor::AddressMonitor;
use crate::args::Options;
use crate::config_watcher::{ConfigChange, ConfigWatcher};
use crate::domain::Domain;
use crate::network_wait::NetworkWait;
use crate::{Outcome, detach, error_text, last_node, predecessor, stop};

/// In the background: how long to wait for the role of the standby. A stopped standby is replaced in this
/// time.
const STANDBY_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between two checks for a stop request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub fn run(options: &Options, background: bool) -> Outcome {
    if background {
        rnet_shm::os::process::close_inherited_fds();
        detach::start_session();
    }
    stop::install_signal_handlers();
    let config = Config::load(&options.overrides()).map_err(error_text)?;
    config.check_insecure()?;
    if config.mode == Mode::Off {
        return Err(format!(
            "the network is off ({}). Set network = \"lan\" in robot.toml, or RNET_NETWORK=lan; \
             see docs/guide/two-computers.md",
            config.mode_source
        ));
    }
    let domain = Domain::open(options)?;
    if background {
        last_node::stop_after_last_node(&domain.location)?;
    }
    let Some(standby) = wait_as_standby(&domain, background)? else { return Ok(()) };
    predecessor::kill_stopped(&standby);
    let is_standby = domain.link.holder().map_err(error_text)?.is_some();
    if background && is_standby {
        detach::silence_stderr();
    }
    let held = domain.link.wait_for_turn(stop::flag()).map_err(error_text)?;
    let Some(held) = held.map(Arc::new) else { return Ok(()) };
    drop(standby);
    // The predecessor has waited for the first node.
    let is_needed = !background || !is_standby || last_node::has_nodes_now(&domain.location);
    predecessor::kill_stopped(&held);
    // It may have been standby for days. If the file is invalid now, it links with the earlier settings and
    // then reports the mistake.
    let config = Config::load(&options.overrides())
        .ok()
        .filter(|config| config.check_insecure().is_ok())
        .unwrap_or(config);
    if config.mode == Mode::Off {
        return Ok(());
    }
    let outcome = match is_needed {
        true => run_link(options, config, &domain, &held, background),
        false => Ok(LinkExit::Requested),
    };
    if let Ok(LinkExit::Restart(what)) = &outcome {
        eprintln!("rnet-link: {what}: the link restarts");
        return restart(options, held, background);
    }
    drop(held);
    if background && last_node::node_returned(&domain.location) {
        detach::spawn(options)?;
    }
    outcome.map(drop)
}

/// Why a link has stopped.
pub enum LinkExit {
    /// A stop was requested.
    Requested,
    /// Another process has to open the network, for this reason: the addresses, interfaces or settings of
    /// the host have changed, or the network does not deliver what another host sends.
    Restart(String),
}

/// Restarts the link as another process.
fn restart(options: &Options, held: Arc<HeldRole>, background: bool) -> Outcome {
    if background {
        // Before the role is released, so that a process waits for it. If a standby exists already, the new
        // process exits soon.
        return detach::spawn(options).map(drop);
    }
    drop(held);
    let failed = |error| format!("cannot restart the link: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    Err(failed(Command::new(program).args(std::env::args_os().skip(1)).exec()))
}

/// Waits for the role; `None` if this process has to exit, or, in the background, if a standby exists
/// already.
fn wait_as_standby(domain: &Domain, background: bool) -> Result<Option<HeldRole>, String> {
    if !background {
        return domain.standby.wait_for_turn(stop::flag()).map_err(error_text);
    }
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let limit = std::thread::Builder::new().name("rnet-timeout".into()).spawn(move || {
        let checks = STANDBY_TIMEOUT.as_millis() / STOP_CHECK_INTERVAL.as_millis();
        for _ in 0..checks {
            if stop::is_requested() || ended.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(STOP_CHECK_INTERVAL);
        }
        ended.store(true, Ordering::SeqCst);
    });
    limit.map_err(|e| format!("cannot start a thread: {e}"))?;
    let held = domain.standby.wait_for_turn(&over).map_err(error_text);
    over.store(true, Ordering::SeqCst);
    held
}

/// The name of this host: that of its certificate, by which others know it.
fn certified_name(keys: &KeysFile, configured: &str) -> Result<String, String> {
    let name = &keys.certificate().name;
    if configured != name && configured != rnet_config::this_host() {
        return Err(format!(
            "this host is called {configured} (host in robot.toml, RNET_HOST or --host), but {} has the keys of host \
             {name}: set host = \"{name}\", or make other keys (rnet keys add-host {configured})",
            keys.path().display()
        ));
    }
    Ok(name.clone())
}

fn run_link(
    options: &Options,
    config: Config,
    domain: &Domain,
    held: &Arc<HeldRole>,
    background: bool,
) -> Result<LinkExit, String> {
    let id = domain.location.id();
    let mut file = ConfigWatcher::new(options.overrides(), &config);
    let mut keys_watch = config.keys.as_deref().map(WatchedFile::new);
    let keys = config.keys.as_deref().map(KeysFile::load).transpose().map_err(error_text)?;
    let mut config = config;
    let configured = config.host.clone();
    if let Some(keys) = &keys {
        config.host = certified_name(keys, &config.host)?;
    } else if config.mode == Mode::Lan {
        eprintln!(
            "rnet-link: the network of domain {id} is \"lan\": anyone on the LAN can join it, read its topics and \
             publish on them"
        );
    }
    // Before Zenoh reads them.
    let interfaces = WithSource::values(&config.interfaces);
    let mut addresses = (config.mode == Mode::Lan).then(|| AddressMonitor::new(&interfaces));
    let network = ZenohOptions {
        listen: WithSource::values(&config.listen),
        connect: config.connect.clone(),
        lan: (config.mode == Mode::Lan).then_some(interfaces),
        lost_after: config.lost_after,
    };
    let host = HostId(domain.location.host_id().map_err(error_text)?);
    let presence = Presence { host, term: held.term() };
    let name = config.host.clone();
    let link = loop {
        let wait = NetworkWait { options, config: &config, presence, network: &network };
        if let Some(end) = wait.wait_until_usable(held, &mut file, background)? {
            return Ok(end);
        }
        let role = held.clone();
        let link_options = LinkOptions {
            node: Domain::node(options, "link"),
            presence,
            config: config.clone(),
            holds_role: Arc::new(move || role.holds()),
        };
        let open = |sink| ZenohNet::open(&network, presence, id, sink).map_err(Error::other);
        let link = match &config.keys {
            None => Link::open(link_options, |_, sink| open(sink)),
            Some(keys) => {
                Link::open(link_options, |own, sink| SecureNetwork::open(keys, own, id, sink, open))
            }
        };
        match link {
            Ok(link) => break link,
            // Another program took the port first.
            Err(_) if network.check().is_err() => {}
            // An interface has gone meanwhile. No standby exists yet, and this process knows only the
            // earlier interfaces.
            Err(LinkError::Network(error)) if background => {
                return wait.pause_before_restart(&error).map(LinkExit::Restart);
            }
            Err(error) => return Err(format!("cannot open the link of domain {id}: {error}")),
        }
    };
    // Zenoh does not know of interfaces that went down while it read them.
    if let Some(addresses) = &mut addresses {
        addresses.note_down_interfaces(&WithSource::values(&config.interfaces));
    }
    // Its topics cross like those of any node, because the state node does not belong to the link.
    // Followers of keys learn of their home by the host's clock, whatever clock the nodes use.
    let state = Domain::node(options, "state").sim_time(false).open().map_err(error_text)?;
    let _home =
        rnet::bridge::serve_state(&state, &name, Some(link.state_access())).map_err(error_text)?;
    if background {
        // Starts the standby, for the moment in which this process exits.
        detach::spawn(options)?;
        detach::silence_stderr();
    }
    while !stop::is_requested() {
        match link.wait(STOP_CHECK_INTERVAL) {
            Some(LinkFailure::Fatal(why)) => return Err(why),
            Some(LinkFailure::Network(what)) => return Ok(LinkExit::Restart(what)),
            None => {}
        }
        if let Some(what) = addresses.as_mut().and_then(AddressMonitor::poll_change) {
            return Ok(LinkExit::Restart(what));
        }
        match file.poll_change() {
            Some(ConfigChange::Settings) => {
                return Ok(LinkExit::Restart(format!("{} has changed", file.name())));
            }
            Some(ConfigChange::Invalid(why)) => {
                eprintln!(
                    "rnet-link: {}: {why}; the previous settings stay in effect",
                    file.name()
                );
                let what = format!("{} (the previous settings stay in effect)", file.name());
                link.report_problem(rnet::Error::BadValue { what, why });
            }
            None => {}
        }
        if let Some(watch) = &mut keys_watch
            && watch.has_changed()
        {
            let loaded = KeysFile::load(watch.path()).map_err(error_text);
            match loaded.and_then(|keys| certified_name(&keys, &configured)) {
                Ok(_) => {
                    let what = format!("{} has changed", watch.path().display());
                    return Ok(LinkExit::Restart(what));
                }
                Err(why) => {
                    let what = "the keys of this host (the earlier ones stay in effect)".into();
                    link.report_problem(rnet::Error::BadValue { what, why });
                }
            }
        }
        if !held.holds() {
            return Err(format!(
                "another process has become the link of domain {id}, because this one did not respond"
            ));
        }
    }
    Ok(LinkExit::Requested)
}
