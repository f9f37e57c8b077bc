#!/usr/bin/env bash
# Installs each file of target/dist/out into an empty folder, and runs the README's programs from there.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly out=$PWD/target/dist/out
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
place=$(mktemp -d)
listener=
cleanup() {
    if [ -n "$listener" ]; then kill "$listener" 2>/dev/null || true; fi
    rm -rf --one-file-system "$place" "/dev/shm/rnet-$(id -u)-$RNET_DOMAIN"
}
# A domain of this test only, in memory.
export RNET_DIR=/dev/shm RNET_DOMAIN=dist_$$
trap cleanup EXIT

one() {
    local found
    found=$(compgen -G "$out/$1") && [ "$(wc -l <<<"$found")" -eq 1 ] || { echo "dist: no single $1 in $out" >&2; exit 1; }
    echo "$found"
}

# The README's Nth code block of a language; or that of another page.
block() {
    awk -v fence="\`\`\`$1" -v wanted="$2" '$0 == "```" { inside = 0 } inside { print }
        index($0, fence) == 1 && ++count == wanted { inside = 1 }' "${3:-README.md}"
}

# Runs both programs; the listener must print the talker's messages.
talk() {
    local received=$place/received
    "${@:2}" >"$received" 2>"$place/errors" &
    listener=$!
    timeout 60 $1
    for _ in $(seq 600); do
        if grep -q '1.5, 1.25, 2.0' "$received"; then break; fi
        kill -0 "$listener" 2>/dev/null || break
        sleep 0.1
    done
    kill "$listener" 2>/dev/null || true
    wait "$listener" 2>/dev/null || true
    listener=
    grep -q '1.5, 1.25, 2.0' "$received" || { echo "dist: no message was received:"; cat "$received" "$place/errors"; exit 1; }
    rm -rf "/dev/shm/rnet-$(id -u)-$RNET_DOMAIN"
}

# The link next to a command has the same version.
link_of() {
    "$1/rnet-link" config | grep -q "\"version\": *\"$version\""
}

echo "== wheel"
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check "$(one 'rnet-*.whl')"
block python 1 >"$place/talker.py"
block python 2 >"$place/listener.py"
"$place/venv/bin/rnet" version --json | grep -q "\"version\": *\"$version\""
link_of "$place/venv/bin"
talk "$place/venv/bin/python $place/talker.py" "$place/venv/bin/python" "$place/listener.py"
"$place/venv/bin/rnet" demo --seconds 8
"$place/venv/bin/python" -c 'import importlib.metadata as m, rnet, pathlib
meta = m.metadata("rnet")
assert meta["Description-Content-Type"].startswith("text/markdown") and "robot-net" in meta.get_payload()
assert meta["License-Expression"] == "MIT OR Apache-2.0" and len(meta.get_all("License-File")) == 2
assert (pathlib.Path(rnet.__file__).parent / "py.typed").exists()'

echo "== tarball"
tar -xJf "$(one 'rnet-*-linux.tar.xz')" -C "$place"
tree=$(compgen -G "$place/rnet-*-linux")
[ "$("$tree/bin/rnet" version)" = "$("$place/venv/bin/rnet" version)" ]
link_of "$tree/bin"
test -s "$tree/share/man/man1/rnet-topic-echo.1.gz" && test -s "$tree/share/bash-completion/completions/rnet"

echo "== crates"
mkdir -p "$place/crates" "$place/user/src/bin"
for crate in "$out"/*.crate; do tar -xzf "$crate" -C "$place/crates"; done
{
    printf '[package]\nname = "user"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\nrnet = "%s"\n' "$version"
    printf '\n[workspace]\n\n[patch.crates-io]\n'
    for crate in "$place"/crates/*; do
        name=${crate##*/}
        printf '%s = { path = "%s" }\n' "${name%-"$version"}" "$crate"
    done
} >"$place/user/Cargo.toml"
cp Cargo.lock "$place/user"
block rust 1 >"$place/user/src/bin/talker.rs"
block rust 2 >"$place/user/src/bin/listener.rs"
(cd "$place/user" && CARGO_TARGET_DIR=$PWD/target cargo build --quiet --bins 2>&1 | grep -v "was not used in the crate graph" || true)
talk "$place/user/target/debug/talker" "$place/user/target/debug/listener"

echo "== C library"
RNET_C_PACKAGES=$out .venv/bin/python -m pytest --quiet examples/test_cpp.py
newest=$(tar -xOzf "$(one 'rnet-c-*.tar.gz')" --wildcards '*/lib/librnet.so.1' | readelf --wide --dyn-syms - | grep -o '@GLIBC_[0-9.]*' | sort -V | tail -n 1)
[ "$(printf '%s\n' @GLIBC_2.28 "$newest" | sort -V | tail -n 1)" = @GLIBC_2.28 ] || { echo "dist: librnet.so.1 needs $newest"; exit 1; }

echo "== Debian packages"
deb=$(one 'rnet_*.deb') libraries=("$(one 'librnet1_*.deb')" "$(one 'librnet-dev_*.deb')")
mkdir "$place/talker"
block cmake 1 docs/guide/cpp.md >"$place/talker/CMakeLists.txt"
block cpp 1 docs/guide/cpp.md >"$place/talker/talker.cpp"
if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning "$deb" "${libraries[@]}"; else
    echo "NOT RUN: dist lintian: lintian is not installed"
fi
if [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null; then
    root=$place/root
    mmdebstrap --quiet --variant=apt --aptopt='APT::Install-Recommends "false"' \
        --customize-hook='copy-in '"$deb ${libraries[*]} $place/talker"' /tmp' \
        --customize-hook='chroot "$1" sh -c "cd /tmp && apt-get install -y -q ./rnet_*.deb"' \
        --customize-hook='chroot "$1" rnet version' \
        --customize-hook='chroot "$1" rnet-link config' \
        --customize-hook='chroot "$1" rnet demo --seconds 8' \
        --customize-hook='chroot "$1" sh -c "cd /tmp && apt-get install -y -q ./librnet1_*.deb ./librnet-dev_*.deb g++ cmake make"' \
        --customize-hook='chroot "$1" sh -c "cd /tmp && cmake -B build talker && cmake --build build && ldd build/talker"' \
        --customize-hook='chroot "$1" sh -c "apt-get purge -y -q rnet && ! test -e /usr/bin/rnet"' \
        stable /dev/null "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
    rm -rf --one-file-system "$root"
else
    echo "NOT RUN: dist deb: an empty Debian needs root and mmdebstrap"
fi

echo "== services"
if [ "$(id -u)" -eq 0 ] && command -v systemd-analyze >/dev/null; then
    host=$place/host unit=$place/rnet-node@.service
    dpkg-deb --extract "$deb" "$host"
    # The node's program exists at the unit's path only on a robot. systemd-analyze prints problems, but exits
    # with 0.
    sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$host/usr/lib/systemd/system/rnet-node@.service" >"$unit"
    complaints=$(systemd-analyze verify --man=no "$unit" 2>&1) && [ -z "$complaints" ] || { echo "dist: $complaints"; exit 1; }
    systemd-sysusers --root="$host" rnet.conf
    systemd-tmpfiles --root="$host" --create rnet.conf
    group=$(sed -n 's/^rnet:[^:]*:\([0-9]*\):.*/\1/p' "$host/etc/group")
    [ "$(stat --format='%a %g' "$host/run/rnet")" = "2770 $group" ]
else
    echo "NOT RUN: dist services: making the group's place needs root and systemd"
fi
