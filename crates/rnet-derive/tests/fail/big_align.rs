use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(crate = "rnet_core")]
#[repr(C, align(16))]
struct S {
    x: [u64; 2],
}

fn main() {}
