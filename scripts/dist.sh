#!/usr/bin/env bash
# Builds the release files in target/dist: wheel, sdist, tarballs, Debian packages, crates.
#
# One build of `rnet` and `rnet-link` goes into wheel, tarball and Debian package. It is linked against glibc
# 2.28 (2018), and so are the Python extension and the C library: they run on Debian 10, Ubuntu 20.04, RHEL 8
# and newer.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
readonly dist=$PWD/target/dist glibc=2.28
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
target=$(rustc -vV | sed -n 's/^host: //p')
machine=${target%%-*}

rm -rf "$dist/out" "$dist/work"
mkdir -p "$dist/out" "$dist/work"
if ! cmp -s packaging/requirements.txt "$dist/venv/requirements.txt"; then
    rm -rf "$dist/venv"
    python3 -m venv "$dist/venv"
    "$dist/venv/bin/pip" install --quiet --disable-pip-version-check --requirement packaging/requirements.txt
    cp packaging/requirements.txt "$dist/venv/requirements.txt"
fi
export PATH=$dist/venv/bin:$PATH
export CARGO_TARGET_DIR=$dist/build CARGO_PROFILE_RELEASE_STRIP=true CARGO_PROFILE_RELEASE_DEBUG=0

echo "== the command, the C library, and the link between hosts"
# Optimised as a whole and for size, except for the crates that Cargo.toml names.
CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
    cargo zigbuild --release --locked --target "$target.$glibc" --package rnet-cli --package rnet-c
cargo zigbuild --release --locked --target "$target.$glibc" --package rnet-net --features zenoh --bin rnet-link
binary=$dist/build/$target/release/rnet
CC="python -m ziglang cc -target $machine-linux-gnu.$glibc" \
    scripts/librnet.sh --from "${binary%/*}/librnet_c.a" "$dist/work/librnet"

echo "== sdist, and the wheel from it"
(cd python && maturin sdist --out "$dist/out")
tar -xzf "$dist/out/rnet-$version.tar.gz" -C "$dist/work"
source=$dist/work/rnet-$version
# Only the wheel contains the programs: users who build from source build them with cargo.
install -Dm755 --target-directory="$source/wheel/scripts" "$binary" "${binary%/*}/rnet-link"
sed -i 's/^\[tool\.maturin\]$/&\ndata = "wheel"/' "$source/pyproject.toml"
(cd "$source" && maturin build --release --zig --compatibility "manylinux_${glibc/./_}" --out "$dist/out")

echo "== tarball"
tree=$dist/work/rnet-$version-$machine-linux
scripts/stage.sh "$binary" "$tree" ""
cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$tree"
tar -C "$dist/work" --owner=0 --group=0 --sort=name -cJf "$dist/out/${tree##*/}.tar.xz" "${tree##*/}"

echo "== Debian package"
scripts/stage.sh "$binary" "$dist/work/deb" /usr
install -d "$dist/work/deb/etc/rnet/nodes"
scripts/deb.sh rnet "$dist/work/deb" "$version" "$glibc" "$dist/out"

echo "== C library"
scripts/dist-c.sh "$dist/work/librnet" "$glibc" "$dist/out"

echo "== crates"
scripts/crates.sh "$dist/out"
ls -l "$dist/out"
