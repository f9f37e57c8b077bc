//! `rnet-link run`: stands by, then links.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rnet::role::HeldRole;
use rnet_net::config::{Config, Listed, Mode};
use rnet_net::link::{Ended, Link, LinkError, LinkOptions};
use rnet_net::zenoh::{ZenohNet, ZenohOptions};
use rnet_net::{HostId, Presence};

use crate::addresses::Addresses;
use crate::args::Options;
use crate::domain::Domain;
use crate::file::{Change, Watched};
use crate::waiting::Waiting;
use crate::{Outcome, detach, nodes, predecessor, stop, told};

/// In the background: for how long the one who stands by is waited for. One that is stopped is replaced in this time.
const STANDBY: Duration = Duration::from_secs(2);
/// Between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(50);

pub fn run(options: &Options, background: bool) -> Outcome {
    if background {
        detach::close_inherited();
        detach::leave_session();
    }
    stop::on_signals();
    let config = Config::load(&options.given()).map_err(told)?;
    config.check_insecure()?;
    if config.mode == Mode::Off {
        return Err(format!(
            "the network is off ({}). Set network = \"lan\" in robot.toml, or RNET_NETWORK=lan; \
             see docs/guide/two-computers.md",
            config.mode_from
        ));
    }
    let domain = Domain::open(options)?;
    if background {
        nodes::end_with_the_last(&domain.location)?;
    }
    let Some(standby) = stand_by(&domain, background)? else { return Ok(()) };
    let before = domain.link.holder().map_err(told)?;
    if background && before.is_some() {
        detach::silence();
    }
    let held = domain.link.wait_for_turn(stop::flag()).map_err(told)?;
    let Some(held) = held.map(Arc::new) else { return Ok(()) };
    drop(standby);
    if let Some(pid) = before {
        predecessor::end(pid);
    }
    // It may have stood by for days. What is a mistake now is told once it links, by what held before.
    let config = Config::load(&options.given())
        .ok()
        .filter(|config| config.check_insecure().is_ok())
        .unwrap_or(config);
    if config.mode == Mode::Off {
        return Ok(());
    }
    let outcome = link(options, config, &domain, &held, background);
    if let Ok(End::Anew(what)) = &outcome {
        eprintln!("rnet-link: {what}: the link restarts");
        return begin_anew(options, held, background);
    }
    drop(held);
    if background && nodes::came_back(&domain.location) {
        detach::spawn(options)?;
    }
    outcome.map(drop)
}

/// Why a link has ended.
pub enum End {
    /// It was told to.
    Asked,
    /// Another process has to open the network: as this says, the addresses or interfaces of the host or its settings
    /// have changed, or the network does not bring what another host says.
    Anew(String),
}

/// Links again, as another process.
fn begin_anew(options: &Options, held: Arc<HeldRole>, background: bool) -> Outcome {
    if background {
        // Before the role is free: who takes it ends this process. If one stands by already, this one ends soon.
        return detach::spawn(options);
    }
    drop(held);
    let failed = |error| format!("cannot restart the link: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    Err(failed(Command::new(program).args(std::env::args_os().skip(1)).exec()))
}

/// Waits to be the next; `None` if this process is to end, or, in the background, if there is a next already.
fn stand_by(domain: &Domain, background: bool) -> Result<Option<HeldRole>, String> {
    if !background {
        return domain.standby.wait_for_turn(stop::flag()).map_err(told);
    }
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let limit = std::thread::Builder::new().name("rnet-limit".into()).spawn(move || {
        let looks = STANDBY.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if stop::is_set() || ended.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(LOOK);
        }
        ended.store(true, Ordering::SeqCst);
    });
    limit.map_err(|e| format!("cannot start a thread: {e}"))?;
    let held = domain.standby.wait_for_turn(&over).map_err(told);
    over.store(true, Ordering::SeqCst);
    held
}

fn link(
    options: &Options,
    config: Config,
    domain: &Domain,
    held: &Arc<HeldRole>,
    background: bool,
) -> Result<End, String> {
    let id = domain.location.id();
    if config.mode == Mode::Lan {
        eprintln!(
            "rnet-link: the network of domain {id} is \"lan\": anyone on the LAN can join it, read its topics and \
             publish on them"
        );
    }
    let mut file = Watched::new(options.given(), &config);
    // Before Zenoh reads them.
    let interfaces = Listed::values(&config.interfaces);
    let mut addresses = (config.mode == Mode::Lan).then(|| Addresses::now(&interfaces));
    let network = ZenohOptions {
        listen: Listed::values(&config.listen),
        connect: config.connect.clone(),
        lan: (config.mode == Mode::Lan).then_some(interfaces),
        lost_after: config.lost_after,
    };
    let host = HostId(domain.location.host_id().map_err(told)?);
    let presence = Presence { host, term: held.term() };
    let name = config.host.clone();
    let link = loop {
        let waiting = Waiting { options, config: &config, presence, network: &network };
        if let Some(end) = waiting.until_usable(held, &mut file, background)? {
            return Ok(end);
        }
        let role = held.clone();
        let link_options = LinkOptions {
            node: Domain::node(options, "link"),
            presence,
            config: config.clone(),
            holds: Arc::new(move || role.holds()),
        };
        let link = Link::open(link_options, |own, sink| {
            ZenohNet::open(&network, own, id, sink).map_err(std::io::Error::other)
        });
        match link {
            Ok(link) => break link,
            // Another program was faster.
            Err(_) if network.check().is_err() => {}
            // An interface has gone meanwhile. Nobody stands by yet, and this process knows those of before.
            Err(LinkError::Network(error)) if background => {
                return waiting.begin_anew(&error).map(End::Anew);
            }
            Err(error) => return Err(format!("cannot open the link of domain {id}: {error}")),
        }
    };
    // What was lost while Zenoh read them is unknown to it.
    if let Some(addresses) = &mut addresses {
        addresses.look_for_down(&Listed::values(&config.interfaces));
    }
    // Its topics cross as those of any node: it is none of the link's.
    // Who follows keys hears of their home by the host's clock, whatever the nodes' time is.
    let state = Domain::node(options, "state").sim_time(false).open().map_err(told)?;
    let _home = rnet::state::serve(&state, &name).map_err(told)?;
    if background {
        // The next in line, for the moment in which this one ends.
        detach::spawn(options)?;
        detach::silence();
    }
    while !stop::is_set() {
        match link.wait(LOOK) {
            Some(Ended::Failed(why)) => return Err(why),
            Some(Ended::Network(what)) => return Ok(End::Anew(what)),
            None => {}
        }
        if let Some(what) = addresses.as_mut().and_then(Addresses::changed) {
            return Ok(End::Anew(what));
        }
        match file.change() {
            Some(Change::Settings) => return Ok(End::Anew(format!("{} has changed", file.name()))),
            Some(Change::Mistake(why)) => {
                eprintln!(
                    "rnet-link: {}: {why}; the previous settings stay in effect",
                    file.name()
                );
                let what = format!("{} (the previous settings stay in effect)", file.name());
                link.tell(rnet::Error::BadValue { what, why });
            }
            None => {}
        }
        if !held.holds() {
            return Err(format!(
                "another process has become the link of domain {id}, because this one did not respond"
            ));
        }
    }
    Ok(End::Asked)
}
