#!/usr/bin/env bash
# Builds the Debian package of `rnet`: deb.sh BINARY VERSION GLIBC FOLDER
set -euo pipefail
[ $# -eq 4 ] || { sed -n '2s/^# \?//p' "$0" >&2; exit 2; }
binary=$1 version=$2 glibc=$3 out=$4
cd "$(dirname "$0")/.."
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
# mktemp's mode would become the mode of the root directory.
chmod 755 "$root"

scripts/stage.sh "$binary" "$root" /usr
doc=$root/usr/share/doc/rnet
install -Dm644 packaging/debian/copyright "$doc/copyright"
# A package without a Debian revision has a single changelog, in Debian's format.
date=$(date --rfc-email --date "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}")
maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
gzip -9n >"$doc/changelog.gz" <<END
rnet ($version) unstable; urgency=medium

  * Version $version: see CHANGELOG.md in the sources for the changes.

 -- $maintainer  $date
END
install -d "$root/etc/rnet/nodes"
install -d "$root/DEBIAN"
size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/; s/@GLIBC@/$glibc/" \
    packaging/debian/control >"$root/DEBIAN/control"
install -m755 packaging/debian/postinst packaging/debian/postrm "$root/DEBIAN"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "$out/rnet_${version}_$arch.deb"
