//! As a user has it.

fn main() {
    rnet_build::protos([
        "proto/robot.proto",
        "proto/awkward.proto",
        "proto/legacy.proto",
        "proto/no_package.proto",
    ]);
}
