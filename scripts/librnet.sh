#!/usr/bin/env bash
# Links the C library: librnet.so.1 with its link librnet.so, and librnet.a. Both have only the symbols rnet_*.
#
#   librnet.sh OUT                    builds crate rnet-c in the development profile, and writes into the folder OUT
#   librnet.sh --release OUT          as above, in the release profile
#   librnet.sh --from ARCHIVE OUT     of an archive that is already built
#
# CC is the compiler that links (default: cc). Nothing is done if the libraries are newer than what they are made of.
set -euo pipefail
usage() {
    sed -n '4,6s/^# \?//p' "$0" >&2
    exit 2
}
profile=debug build=(cargo build --package rnet-c) archive=
case "$# ${1-}" in
'1 -'*) usage ;;
'1 '*) ;;
'2 --release') profile=release build+=(--release) && shift ;;
'3 --from') archive=$(realpath "$2") && shift 2 ;;
*) usage ;;
esac
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
readonly map=crates/rnet-c/rnet.map

if [ -z "$archive" ]; then
    "${build[@]}"
    archive=$(realpath "${CARGO_TARGET_DIR:-target}/$profile/librnet_c.a")
fi
newest=$(ls -t "$archive" "$map" scripts/librnet.sh | head -n 1)
if [ "$out/librnet.so.1" -nt "$newest" ] && [ "$(cat "$out/made-of" 2>/dev/null)" = "$archive" ]; then exit; fi
mkdir -p "$out"
work=$(mktemp -d "$out/link.XXXXXX")
trap 'rm -rf "$work"' EXIT

# One object of all that the functions need, in which every other name is local: a program may be linked with
# another library in Rust. The bitcode of Rust's own library, for its compiler alone, goes.
nm --defined-only --extern-only --format=posix "$archive" 2>/dev/null |
    awk '$2 == "T" && $1 ~ /^rnet_/ { print "--undefined=" $1 }' >"$work/roots"
[ -s "$work/roots" ] || { echo "librnet: $archive has no function rnet_*" >&2; exit 1; }
ld -r --gc-sections -o "$work/librnet.o" @"$work/roots" "$archive"
objcopy --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd --wildcard --keep-global-symbol='rnet_*' "$work/librnet.o"
ar rcsD "$work/librnet.a" "$work/librnet.o"

# Not unloaded by dlclose: its threads and its handlers of fork stay.
${CC:-cc} -shared -o "$work/librnet.so.1" -Wl,-soname,librnet.so.1 -Wl,--version-script="$map" \
    -Wl,--gc-sections -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
    "$work/librnet.o" -lgcc_s -lpthread -ldl -lm
ln -s librnet.so.1 "$work/librnet.so"
# Into new files: a running program keeps what it has mapped.
mv -f "$work"/librnet.{a,so,so.1} "$out"
echo "$archive" >"$out/made-of"
