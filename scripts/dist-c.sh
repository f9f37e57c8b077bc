#!/usr/bin/env bash
# Packs the C library in the folder OUT: a tarball for CMake's FetchContent, and, where dpkg is installed, the
# Debian packages librnet1 and librnet-dev.
#
#   dist-c.sh LIBRARIES GLIBC OUT     of a folder that scripts/librnet.sh has written, which needs GLIBC
set -euo pipefail
[ $# -eq 3 ] || { sed -n '2,5s/^# \?//p' "$0" >&2; exit 2; }
libraries=$(realpath "$1") glibc=$2 out=$(realpath "$3")
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

mkdir "$work/lib"
for library in librnet.so.1 librnet.a; do
    strip --strip-unneeded --remove-section=.comment -o "$work/lib/$library" "$libraries/$library"
done

tree=$work/rnet-c-$version-$(uname -m)
scripts/stage-c.sh "$work/lib" "$tree" "" lib
sed "s/@VERSION@/$version/" packaging/cmake/CMakeLists.txt >"$tree/CMakeLists.txt"
cp CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$tree"
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out/${tree##*/}.tar.gz" "${tree##*/}"

command -v dpkg >/dev/null || exit 0
case $(uname -m) in
x86_64 | aarch64) lib=lib/$(uname -m)-linux-gnu ;;
*) lib=lib ;;
esac
scripts/stage-c.sh "$work/lib" "$work/librnet-dev" /usr "$lib"
install -d "$work/librnet1/usr/$lib"
mv "$work/librnet-dev/usr/$lib/librnet.so.1" "$work/librnet1/usr/$lib"
for name in librnet1 librnet-dev; do scripts/deb.sh "$name" "$work/$name" "$version" "$glibc" "$out"; done
