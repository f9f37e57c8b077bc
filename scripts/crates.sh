#!/usr/bin/env bash
# Packages the released crates, and builds each from its package alone: crates.sh FOLDER
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2s/^# \?//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.."
names=$(cargo metadata --no-deps --format-version 1 |
    python3 -c 'import json, sys; print(*(p["name"] for p in json.load(sys.stdin)["packages"] if p["publish"] is None))')
args=()
for name in $names; do args+=(--package "$name"); done
# cargo reuses crates that an earlier run has unpacked and built: the version is the same, the content is not.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/{src,cache}/-*/rnet{,-*}-[0-9]* \
    "${CARGO_TARGET_DIR:-target}"/debug/.fingerprint/rnet{,-*}-*
cargo package --locked --allow-dirty "${args[@]}"
cp "${CARGO_TARGET_DIR:-target}"/package/*.crate "$1"
