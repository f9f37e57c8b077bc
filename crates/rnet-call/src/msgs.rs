//! The messages of calls and commands; `rnet::msgs` has all.

include!(concat!(env!("OUT_DIR"), "/rnet.msgs.rs"));
