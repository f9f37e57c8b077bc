#!/usr/bin/env bash
# Prepares what the comparison needs beyond robot-net itself: the rivals' libraries, servers and Python
# packages. Safe to run again; does nothing where nothing is missing. A part that cannot be installed is
# reported, and the script continues: the report has a row for it. It fails only where none of the parts is
# there in the end.
#
#   bench/setup.sh               everything
#   bench/setup.sh --no-python   without the Python packages
set -euo pipefail
cd "$(dirname "$0")"

with_python=true
case "${1-}" in
'') ;;
--no-python) with_python=false ;;
*)
    echo "usage: bench/setup.sh [--no-python]" >&2
    exit 2
    ;;
esac

there=0
missing=0
# Runs a command and counts the part as installed; if it fails, reports that $1 cannot be installed.
part() {
    local what=$1
    shift
    if "$@"; then there=$((there + 1)); else cannot "$what"; fi
}
cannot() {
    missing=$((missing + 1))
    printf 'setup: cannot install %s: what needs it will be a row saying so\n' "$*" >&2
}
finish() {
    if [ "$missing" -gt 0 ]; then echo "setup: $missing of the rivals' parts are missing" >&2; fi
    if [ "$there" -eq 0 ]; then exit 1; fi
    exit 0
}

# Debian or Ubuntu packages of each competitor.
packages=(
    g++ cmake pkg-config             # for crates that build C or C++
    libclang-dev                     # iceoryx2: its crate reads C headers
    redis-server                     # Redis
    libzmq3-dev cppzmq-dev           # ZeroMQ and its C++ binding
    libnng-dev libnanomsg-dev        # nng, nanomsg
    cyclonedds-dev cyclonedds-tools  # Cyclone DDS and its compiler of types
    liblcm-dev                       # LCM
)
nats_version=v2.15.2

installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

source ../scripts/packages.sh

# Installs one Debian package; fails where that is not possible.
need_package() {
    if installed "$1"; then return 0; fi
    can_install_packages || return 1
    echo "setup: installing $1"
    install_packages --no-install-recommends "$1"
}

# Debian starts a server when it is installed; it is not used here.
need_server() {
    if installed "$1" || command -v "$1" >/dev/null; then return 0; fi
    need_package "$1" || return 1
    if command -v systemctl >/dev/null; then
        "${as_root[@]}" systemctl disable --now "$1" >/dev/null 2>&1 || true
    fi
}

for package in "${packages[@]}"; do
    case $package in
    *-server) need=need_server ;;
    *) need=need_package ;;
    esac
    part "$package (sudo apt-get install $package)" "$need" "$package"
done

# NATS: Debian's is years old, so its own release, built here.
need_nats() {
    local found
    found=$(.tools/bin/nats-server --version 2>/dev/null) || found=
    if [ "$found" = "nats-server: $nats_version" ]; then return 0; fi
    command -v go >/dev/null || need_package golang-go || return 1
    echo "setup: building nats-server $nats_version"
    GOBIN="$PWD/.tools/bin" GOFLAGS=-modcacherw \
        go install "github.com/nats-io/nats-server/v2@$nats_version"
}
# robot-net's C library, which the driver in C++ links. Not counted: none of the rivals needs it.
../scripts/librnet.sh --release ../target/release/c || cannot "robot-net's C library (scripts/librnet.sh has failed)"

part "nats-server $nats_version (it needs Go 1.21 or newer and the Go module proxy)" need_nats

"$with_python" || finish

# The root's set-up makes .venv, whose maturin builds robot-net's Python package below.
part "the tools of robot-net's own build (scripts/setup.sh has failed)" ../scripts/setup.sh
python=${PYTHON:-python3}
if ! python_version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])'); then
    cannot "the Python packages ($python does not run: install Python, or set PYTHON)"
    finish
fi

# Creates a virtual environment; replaces one of another Python or an incomplete one.
make_venv() {
    local venv=$1
    if [ "$(cat "$venv/bench-python-version" 2>/dev/null)" = "$python_version" ] &&
        "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    echo "setup: making bench/$venv with Python $python_version"
    rm -rf "$venv" && "$python" -m venv "$venv" &&
        echo "$python_version" >"$venv/bench-python-version"
}

pip_install() {
    local venv=$1
    shift
    "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
        "$@" </dev/null
}

# Installs one requirement, unless it is among those that are done.
need_line() {
    local venv=$1 line=$2 done_lines=$3
    if grep --quiet --line-regexp --fixed-strings -- "$line" "$done_lines"; then return 0; fi
    echo "setup: installing $line"
    pip_install "$venv" "$line" && echo "$line" >>"$done_lines"
}

# Installs each line of a file of requirements into a virtual environment, so that a package that
# is not to be had costs its own system only. A line that failed is tried again the next time.
install_python() {
    local venv=$1 requirements=$2 line
    local done_lines=$venv/bench-requirements.txt
    if ! make_venv "$venv"; then
        cannot "$requirements (no virtual environment: sudo apt-get install python3-venv)"
        return 0
    fi
    touch "$done_lines"
    while IFS= read -r line; do
        case $line in '' | '#'*) continue ;; esac
        part "$line (Python)" need_line "$venv" "$line" "$done_lines"
    done <"$requirements"
}

install_python .venv python/requirements.txt
install_python .venv-ecal python/requirements-ecal.txt

# robot-net's own package, as a wheel: `maturin develop` would install it into the root's .venv, too.
# Built again only when a source is newer than the wheel.
need_rnet() {
    local wheels=.tools/wheels newest
    mkdir -p "$wheels" || return 1
    newest=$(find "$wheels" -name 'rnet-*.whl' 2>/dev/null | head -n 1)
    if [ -n "$newest" ] && .venv/bin/python -c 'import rnet' 2>/dev/null && [ -z "$(find \
        ../crates ../python/src ../python/python ../python/Cargo.toml ../python/pyproject.toml \
        ../Cargo.lock -newer "$newest" -type f ! -name '*.so' ! -name '*.pyc' -print -quit)" ]; then
        return 0
    fi
    echo "setup: building robot-net's Python package"
    rm -rf "$wheels" &&
        (cd ../python && env --unset=CONDA_PREFIX --unset=VIRTUAL_ENV ../.venv/bin/maturin build \
            --release --quiet --out "../bench/$wheels") &&
        pip_install .venv --force-reinstall --no-deps "$wheels"/rnet-*.whl
}
part "robot-net's Python package" need_rnet

finish
