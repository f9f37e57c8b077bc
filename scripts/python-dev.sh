#!/usr/bin/env bash
# Builds the command `rnet`, the extension module of the Python package and the nodes of the demo, and makes
# `.venv` import the package from this checkout.
#
#   python-dev.sh              with the development profile, as `make test` uses it
#   python-dev.sh --demo       without the servers for browsers and viewers: for `make demo`
#   python-dev.sh --release    with the release profile, as `make build` uses it
set -euo pipefail
cd "$(dirname "$0")/.."

profile=debug
case ${1-} in
--release) profile=release ;;
--demo) set -- --no-default-features ;;
esac
cargo build "$@" --package rnet-cli --package rnet-python --package rnet-demo

target=${CARGO_TARGET_DIR:-target}
# Into a new file: a running program keeps the module that it has mapped.
cp "$target/$profile/lib_rnet.so" python/python/rnet/_rnet.abi3.so.new
mv python/python/rnet/_rnet.abi3.so.new python/python/rnet/_rnet.abi3.so
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/python/python" >"$site/rnet.pth"
