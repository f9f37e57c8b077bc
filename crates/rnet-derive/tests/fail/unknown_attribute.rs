use rnet_derive::Plain;

#[derive(Clone, Copy, Plain)]
#[plain(rename = "T")]
#[repr(C)]
struct S {
    x: u32,
}

fn main() {}
