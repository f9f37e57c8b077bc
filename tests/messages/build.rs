//! Like the build script of a user.

fn main() {
    rnet_build::protos([
        "proto/robot.proto",
        "proto/awkward.proto",
        "proto/legacy.proto",
        "proto/no_package.proto",
    ]);
}
