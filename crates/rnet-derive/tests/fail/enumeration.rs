use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
enum Mode {
    Off,
    On,
}

fn main() {}
