//! Systems that are used in C++: robot-net by its headers, libzmq by cppzmq, and why others are missing.
//!
//! The harness numbers, paces and checks in Rust as for every driver. A message costs one more call through a
//! pointer than with a driver in Rust at each end: at most 4 ns, measured with a system that sends nothing.

mod endpoint;
mod ffi;

use bench_harness::{About, Error, Net, Publisher, Result, Sink, Subscription, System, Topic};
use std::result::Result as StdResult;

/// The systems of this crate.
pub fn systems() -> Vec<Box<dyn System>> {
    vec![
        Box::new(CppSystem {
            id: "rnet-cpp",
            label: "robot-net, adaptive, C++",
            client: "rnet/rnet.hpp, librnet.so linked dynamically (C++)",
            settings: &[
                "waiting policy of the subscriber: adaptive (the default)",
                "reliable, the writer waits for room; one node per process; its directory on /dev/shm: as \
                 rnet-adaptive",
            ],
            transport: Transport::SharedMemory,
            functions: rnet(),
        }),
        Box::new(CppSystem {
            id: "zmq-cpp",
            label: "ZeroMQ PUB/SUB tcp, C++",
            client: "libzmq through cppzmq (C++)",
            settings: &[
                "ZMQ_SNDHWM, ZMQ_RCVHWM, ZMQ_LINGER, ZMQ_AFFINITY, ZMQ_XPUB_NODROP, two I/O threads: as \
                 zmq-tcp",
            ],
            transport: Transport::Tcp,
            functions: zmq(),
        }),
        missing(
            "cyclonedds-cpp",
            "Cyclone DDS, C++",
            "Debian 12 has the C library alone, and no package registry has cyclonedds-cxx; cyclonedds sends and \
             takes in compiled C, by the functions that the C++ binding calls",
        ),
        missing(
            "iceoryx2-cpp",
            "iceoryx2, C++",
            "no package registry has its C++ binding; crates.io has its C functions up to version 0.4.1 alone \
             (iceoryx2-ffi); iceoryx2-event is the Rust library that the C++ binding calls",
        ),
        missing(
            "ecal-cpp",
            "eCAL, C++",
            "the package eclipse-ecal of PyPI has libecal_core.so without its headers, and Debian has no eCAL",
        ),
    ]
}

#[cfg(has_cpp_rnet)]
fn rnet() -> StdResult<&'static ffi::Functions, &'static str> {
    // SAFETY: a constant of the C++ source.
    Ok(unsafe { &ffi::bench_cpp_rnet })
}

#[cfg(not(has_cpp_rnet))]
fn rnet() -> StdResult<&'static ffi::Functions, &'static str> {
    Err("librnet.so was missing when this was built: run bench/setup.sh, then build again")
}

#[cfg(has_cpp_zmq)]
fn zmq() -> StdResult<&'static ffi::Functions, &'static str> {
    // SAFETY: a constant of the C++ source.
    Ok(unsafe { &ffi::bench_cpp_zmq })
}

#[cfg(not(has_cpp_zmq))]
fn zmq() -> StdResult<&'static ffi::Functions, &'static str> {
    Err("cppzmq-dev was not installed when this was built: apt-get install cppzmq-dev")
}

fn missing(id: &'static str, label: &'static str, why: &'static str) -> Box<dyn System> {
    let (client, settings, transport) = ("none", &[][..], Transport::SharedMemory);
    Box::new(CppSystem { id, label, client, settings, transport, functions: Err(why) })
}

/// How subscribers find publishers.
#[derive(Clone, Copy)]
enum Transport {
    /// Both have the run's directory.
    SharedMemory,
    /// A publisher announces its address.
    Tcp,
}

struct CppSystem {
    id: &'static str,
    label: &'static str,
    client: &'static str,
    settings: &'static [&'static str],
    transport: Transport,
    /// Its functions, or why they are missing.
    functions: StdResult<&'static ffi::Functions, &'static str>,
}

impl CppSystem {
    fn functions(&self) -> Result<&'static ffi::Functions> {
        self.functions.map_err(Error::new)
    }
}

impl System for CppSystem {
    fn id(&self) -> &'static str {
        self.id
    }

    fn language(&self) -> &'static str {
        "c++"
    }

    fn about(&self) -> About {
        About {
            label: self.label.into(),
            client: self.client.into(),
            settings: self.settings.iter().map(|text| (*text).into()).collect(),
        }
    }

    fn version(&self) -> Result<String> {
        let mut text = ffi::Text::new();
        // SAFETY: the text is valid for a write.
        unsafe { (self.functions()?.version)(&mut text) };
        Ok(text.get())
    }

    fn publisher(&self, net: &Net, topic: &Topic) -> Result<Box<dyn Publisher>> {
        let place = match self.transport {
            Transport::SharedMemory => net.host_dir().display().to_string(),
            Transport::Tcp => format!("tcp://{}:*", net.address()),
        };
        let (publisher, address) = endpoint::publisher(self.functions()?, &place, topic)?;
        if !address.is_empty() {
            net.announce(topic, &address)?;
        }
        Ok(publisher)
    }

    fn subscribe(&self, net: &Net, topic: &Topic, sink: Sink) -> Result<Subscription> {
        let place = match self.transport {
            Transport::SharedMemory => net.host_dir().display().to_string(),
            Transport::Tcp => {
                let addresses = (0..topic.publishers).map(|i| net.find(topic, i));
                addresses.collect::<Result<Vec<_>>>()?.join("\n")
            }
        };
        endpoint::subscribe(self.functions()?, &place, topic, sink)
    }
}
