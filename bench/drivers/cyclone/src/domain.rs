//! Cyclone's domains in this process: one for each use, shared by its publishers and subscriptions.

use crate::ffi::{self, Entity};
use bench_harness::{Error, Lane, Net, Profile, Result, Topic};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The use of a domain: its number among the domains of this process, and on the network.
#[derive(Clone, Copy)]
enum Use {
    Throughput = 0,
    Latency = 1,
    Urgent = 2,
}

/// Distance of local ids of domains with the same number on the network.
const USE_GAIN: u32 = 1000;
/// The first port of domain 0 (the specification's default), and how far apart the uses' ports are; a domain
/// has 250 ports; the first few are taken.
const PORT_BASE: u32 = 7400;
const PORT_GAIN: u32 = 80;

struct Open {
    domain: Entity,
    participant: Entity,
    users: usize,
}

static OPEN: LazyLock<Mutex<HashMap<u32, Open>>> = LazyLock::new(Mutex::default);

/// Holds a domain with its participant open.
pub struct Domain {
    id: u32,
    /// The participant, one for the process, as the documentation advises.
    pub participant: Entity,
}

impl Domain {
    /// Joins the domain for `topic`, opening it when this process is not in it yet.
    pub fn join(net: &Net, topic: &Topic) -> Result<Self> {
        let purpose = match (topic.lane, topic.profile) {
            (Lane::Urgent, _) => Use::Urgent,
            (Lane::Bulk, Profile::Throughput) => Use::Throughput,
            (Lane::Bulk, Profile::Latency) => Use::Latency,
        };
        let id = u32::from(net.number) + USE_GAIN * purpose as u32;
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&id) {
            open.users += 1;
            return Ok(Self { id, participant: open.participant });
        }
        let xml = CString::new(config(net, purpose))?;
        // SAFETY: the text is read during the call.
        let domain =
            checked("dds_create_domain", unsafe { ffi::dds_create_domain(id, xml.as_ptr()) })?;
        // SAFETY: no QoS and no listener are given.
        let made = unsafe { ffi::dds_create_participant(id, std::ptr::null(), std::ptr::null()) };
        let participant =
            checked("dds_create_participant", made).inspect_err(|_| delete(domain))?;
        all.insert(id, Open { domain, participant, users: 1 });
        Ok(Self { id, participant })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // The lock is kept until the domain is gone: its id cannot be taken again before.
        let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&self.id) {
            open.users -= 1;
            if open.users == 0 {
                delete(open.domain);
                all.remove(&self.id);
            }
        }
    }
}

/// The domain's configuration; `settings` in lib.rs gives the reasons.
fn config(net: &Net, purpose: Use) -> String {
    let (number, interface) = (net.number, net.interface());
    let batch = matches!(purpose, Use::Throughput);
    let marks = if batch {
        ""
    } else {
        "<Watermarks><WhcHigh>64MB</WhcHigh><WhcHighInit>64MB</WhcHighInit>\
         <WhcAdaptive>false</WhcAdaptive></Watermarks>"
    };
    let sizes = if net.host.is_some() {
        ""
    } else {
        "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>"
    };
    let base = PORT_BASE + PORT_GAIN * purpose as u32;
    format!(
        "<CycloneDDS><Domain>\
           <General>\
             <Interfaces><NetworkInterface name=\"{interface}\" multicast=\"true\"/></Interfaces>\
             {sizes}\
           </General>\
           <Discovery>\
             <ExternalDomainId>{number}</ExternalDomainId>\
             <Ports><Base>{base}</Base></Ports>\
           </Discovery>\
           <Internal>\
             <SocketReceiveBufferSize max=\"10MB\"/>\
             <WriteBatch>{batch}</WriteBatch>{marks}\
           </Internal>\
         </Domain></CycloneDDS>"
    )
}

/// The result of a call, or its error code as an error.
pub fn checked(call: &str, returned: i32) -> Result<i32> {
    if returned >= 0 {
        return Ok(returned);
    }
    // SAFETY: the text is static, for any code.
    let why = unsafe { CStr::from_ptr(ffi::dds_strretcode(returned)) }.to_string_lossy();
    Err(Error::new(format!("{call}: {why}")))
}

/// Deletes an entity and what it contains. It cannot fail for one that exists.
pub fn delete(entity: Entity) {
    // SAFETY: entities are numbers that the library checks.
    unsafe { ffi::dds_delete(entity) };
}
