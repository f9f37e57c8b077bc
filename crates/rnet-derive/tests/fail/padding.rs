use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct Reading {
    value: f64,
    sensor: u32,
}

fn main() {}
