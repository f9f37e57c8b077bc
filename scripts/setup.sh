#!/usr/bin/env bash
# Prepares everything that the build, the tests and the demo need: tools, .venv, Python packages.
# Can be run again; does nothing if nothing is missing.
#
#   setup.sh              for everything except the following
#   setup.sh --valgrind   only valgrind, for `cargo xtask instructions`
#   setup.sh --dist       tools that check the Debian package, for scripts/dist-test.sh
#   setup.sh --net        tools for network namespaces, for `make test-net`
#   setup.sh --metrics    Prometheus, for `make test-metrics`
#   setup.sh --dashboard  node, a browser and the fonts of the screenshots, for `make test-dashboard`
#   setup.sh --foxglove   node and a client of the Foxglove protocol, for `make test-foxglove`
#   setup.sh --c          compilers, CMake, protobuf and abidiff for the C library, for cpp/test.sh and others
#   setup.sh --fuzz       only a C++ compiler, for scripts/fuzz.sh (libFuzzer is C++)
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

source scripts/packages.sh

# Installs Debian packages if possible; otherwise prints which to install.
need_packages() {
    can_install_packages || fail "please install: $*   (Debian, Ubuntu: sudo apt-get install $*)"
    echo "setup: installing $*"
    install_packages "$@" || fail "apt-get cannot install: $*"
}

case ${1-} in
--valgrind)
    command -v valgrind >/dev/null || need_packages valgrind
    exit
    ;;
--dist)
    command -v lintian >/dev/null && command -v mmdebstrap >/dev/null && command -v systemd-analyze >/dev/null ||
        need_packages lintian mmdebstrap systemd
    exit
    ;;
--net)
    # Without them, or without root, tests with hosts report that they were not run.
    if [ "$(id -u)" -eq 0 ] && ! { command -v ip && command -v nft; } >/dev/null; then need_packages iproute2 nftables; fi
    exit
    ;;
--metrics)
    command -v promtool >/dev/null || need_packages prometheus
    exit
    ;;
--dashboard)
    command -v chromium >/dev/null && command -v fc-list >/dev/null && [ -n "$(fc-list ':family=Inter' family)" ] &&
        [ -n "$(fc-list ':family=JetBrains Mono' family)" ] || need_packages chromium fontconfig fonts-inter fonts-jetbrains-mono
    scripts/node.sh true
    exit
    ;;
--foxglove)
    scripts/node.sh npm ci --ignore-scripts --no-audit --no-fund --prefix crates/rnet-foxglove/tests/client
    exit
    ;;
--c)
    { command -v g++ && command -v cmake && command -v pkg-config && command -v protoc && command -v abidiff; } \
        >/dev/null && [ -e /usr/include/google/protobuf/message.h ] && [ -e /usr/include/asio.hpp ] &&
        [ -e /usr/include/spdlog/spdlog.h ] && [ -e /usr/include/nlohmann/json.hpp ] &&
        [ -e /usr/include/eigen3/Eigen/Core ] && [ -e /usr/include/opencv4/opencv2/core.hpp ] ||
        need_packages g++ make cmake pkg-config protobuf-compiler libprotobuf-dev nlohmann-json3-dev abigail-tools \
            libasio-dev libspdlog-dev libeigen3-dev libopencv-core-dev
    # Without them, as on systems that do not have these packages, the test of a colcon workspace is not run.
    if ! [ -e /usr/share/ament_cmake ] || ! [ -e /usr/lib/python3/dist-packages/colcon_ros ]; then
        can_install_packages && install_packages --no-install-recommends ament-cmake colcon python3-colcon-cmake \
            python3-colcon-recursive-crawl python3-colcon-ros || echo "setup: colcon and ament_cmake were not installed"
    fi
    exit
    ;;
--fuzz)
    command -v c++ >/dev/null || need_packages g++
    exit
    ;;
?*) fail "unknown argument: $1" ;;
esac

command -v cargo >/dev/null || fail "cargo not found: install Rust from https://rustup.rs"
rust_wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_found=$(rustc --version | cut -d' ' -f2)
printf '%s\n' "$rust_wanted" "$rust_found" | sort --check=quiet --version-sort ||
    fail "Rust $rust_found found, $rust_wanted or newer needed: run 'rustup update'"

command -v cc >/dev/null || need_packages gcc libc6-dev
# For the node of the demo in C++.
command -v "${CXX:-c++}" >/dev/null || need_packages g++
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "$python not found: install Python 3.10 or newer"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$("$python" --version) found, 3.10 or newer needed: set PYTHON=/path/to/python3"
"$python" -c 'import venv, ensurepip' 2>/dev/null || need_packages python3-venv

# A virtual environment of another Python, or an incomplete one, is recreated.
version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
if [ "$(cat .venv/rnet-python-version 2>/dev/null)" != "$version" ] ||
    ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "setup: creating .venv with Python $version"
    rm -rf .venv
    "$python" -m venv .venv
    echo "$version" >.venv/rnet-python-version
fi

requirements=python/requirements-dev.txt
if [ ! -f "$requirements" ]; then
    echo "setup: $requirements does not exist, so no Python packages were installed" >&2
elif ! cmp -s "$requirements" .venv/rnet-requirements.txt; then
    echo "setup: installing $requirements"
    .venv/bin/python -m pip install --quiet --no-input --disable-pip-version-check \
        --requirement "$requirements"
    cp "$requirements" .venv/rnet-requirements.txt
fi
