//! Publishers, subscriptions, and the check of the installation.

use crate::ffi;
use crate::node::{Lcm, Node, ignore};
use bench_harness::{Error, Net, Publisher, Result, Sink, Subscription, Topic};
use std::ffi::{CStr, CString, c_char, c_void};

/// Outside the ports of runs.
const PROBE_PORT: u16 = 7667 + 450;
/// LCM_MAX_CHANNEL_NAME_LENGTH.
const CHANNEL_MAX: usize = 63;

struct Sender {
    node: Node,
    channel: CString,
}

impl Publisher for Sender {
    fn send(&mut self, message: &[u8]) -> Result<()> {
        if self.node.lcm.publish(&self.channel, message)? {
            return Ok(());
        }
        let why = std::io::Error::last_os_error();
        Err(Error::new(format!("lcm_publish of {} bytes: {why}", message.len())))
    }
}

pub fn publisher(net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
    Ok(Box::new(Sender { node: Node::join(net, topic)?, channel: channel(net, topic)? }))
}

pub fn subscribe(net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
    let node = Node::join(net, topic)?;
    let slot = node.subscribe(&channel(net, topic)?, sink)?;
    Ok(Subscription::new(move || {
        // Waits for a message being delivered; LCM itself forgets the handler with the instance.
        drop(slot.lock().map(|mut sink| sink.take()));
        drop(node);
    }))
}

/// The topic's channel in this run: its name and the run's directory, in letters that mean
/// themselves in LCM's patterns.
fn channel(net: &Net, topic: &Topic) -> Result<CString> {
    let run = net.dir.file_name().unwrap_or_default().to_string_lossy();
    let name: String = format!("{}_{run}", topic.name)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.len() > CHANNEL_MAX {
        return Err(Error::new(format!(
            "channel {name} is longer than LCM allows ({CHANNEL_MAX})"
        )));
    }
    Ok(CString::new(name)?)
}

/// The version of the package and the name of the library's file, which is what was loaded (the library has
/// no call for it), after LCM has received a multicast message of its own.
pub fn version() -> Result<String> {
    let lcm = Lcm::create(PROBE_PORT)?;
    let heard = lcm.subscribe(&CString::new("probe")?, ignore, std::ptr::null_mut());
    lcm.destroy();
    heard?;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null::<c_char>(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked about.
    if unsafe { libc::dladdr(ffi::lcm_create as *const c_void, &mut info) } == 0 {
        return Ok("unknown".into());
    }
    // SAFETY: a successful call has set the name, which stays while the library is loaded.
    let path = unsafe { CStr::from_ptr(info.dli_fname) }.to_str()?;
    let file = std::fs::canonicalize(path)?;
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(match option_env!("LCM_PC_VERSION") {
        Some(version) => format!("{version} ({file})"),
        None => file.into_owned(),
    })
}

/// The size of the kernel's receive buffer that a socket gets here.
pub fn receive_buffer() -> String {
    let allowed = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    match allowed.trim().parse::<usize>() {
        Ok(allowed) => format!("{} bytes here", allowed.min(8 << 20)),
        Err(_) => "unknown here".into(),
    }
}
