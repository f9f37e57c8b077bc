#!/usr/bin/env bash
# Builds the command `rnet`, the extension module of the Python package, the C library and the nodes of the demo, of
# which one is in C++, and makes `.venv` import the package from this checkout.
#
#   python-dev.sh              with the development profile, as `make test` uses it
#   python-dev.sh --demo       without the servers for browsers and viewers: for `make demo`
#   python-dev.sh --release    with the release profile, as `make build` uses it
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
profile=debug library=$target/c/lib
case ${1-} in
--release) profile=release library=$target/release/c ;;
--demo) set -- --no-default-features ;;
esac
cargo build "$@" --package rnet-cli --package rnet-python --package rnet-demo --package rnet-c

scripts/librnet.sh --from "$target/$profile/librnet_c.a" "$library"
node=$target/$profile/demo-safety
if ! [ -e "$node" ] || [ -n "$(find demo/nodes-cpp cpp/include crates/rnet-c/include scripts/python-dev.sh -newer "$node")" ]; then
    ${CXX:-c++} -std=c++20 -O1 -Wall -Wextra -Icrates/rnet-c/include -Icpp/include demo/nodes-cpp/safety.cpp \
        -L"$library" -Wl,-rpath,"$library" -lrnet -pthread -o "$node.new"
    mv "$node.new" "$node"
fi

# Into a new file: a running program keeps the module that it has mapped.
cp "$target/$profile/lib_rnet.so" python/python/rnet/_rnet.abi3.so.new
mv python/python/rnet/_rnet.abi3.so.new python/python/rnet/_rnet.abi3.so
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$PWD/python/python" >"$site/rnet.pth"
