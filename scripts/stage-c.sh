#!/usr/bin/env bash
# Installs the C library under a directory: libraries, headers of C and C++, files for CMake and pkg-config.
#
#   stage-c.sh LIBRARIES ROOT PREFIX [LIBDIR]     such as: stage-c.sh target/c/lib "$DESTDIR" /usr/local lib
#
# LIBRARIES is a folder that scripts/librnet.sh has written.
set -euo pipefail
[ $# -eq 3 ] || [ $# -eq 4 ] || { sed -n '2,6s/^# \?//p' "$0" >&2; exit 2; }
libraries=$(realpath "$1")
lib=${4:-lib} root=$2$3
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

install -Dm644 "$libraries/librnet.so.1" "$root/$lib/librnet.so.1"
ln -sfn librnet.so.1 "$root/$lib/librnet.so"
install -m644 "$libraries/librnet.a" "$root/$lib/librnet.a"

install -Dm644 crates/rnet-c/include/rnet.h "$root/include/rnet.h"
(cd cpp/include && find rnet -name '*.hpp' -exec install -Dm644 {} "$root/include/{}" \;)

# The files find the others by relative paths, so that the tree can be moved.
fill() {
    local folder=$root/$lib/${2%/*}
    install -d "$folder"
    sed -e "s|@VERSION@|$version|g; s|@SERIES@|${version%.*}|g" \
        -e "s|@INCLUDE@|$(realpath -ms --relative-to="$folder" "$root/include")|g" \
        -e "s|@PREFIX@|$(realpath -ms --relative-to="$folder" "$root")|g" "packaging/$1" >"$root/$lib/$2"
    chmod 644 "$root/$lib/$2"
}
fill cmake/rnetConfig.cmake cmake/rnet/rnetConfig.cmake
fill cmake/rnetConfigVersion.cmake cmake/rnet/rnetConfigVersion.cmake
fill pkgconfig/rnet.pc pkgconfig/rnet.pc
