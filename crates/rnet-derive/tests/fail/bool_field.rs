use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C)]
struct S {
    on: [bool; 4],
}

fn main() {}
