//! The messages between the homes of keys and those who ask them; `rnet::msgs` has all.

include!(concat!(env!("OUT_DIR"), "/rnet.msgs.rs"));
