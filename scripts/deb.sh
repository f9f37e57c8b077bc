#!/usr/bin/env bash
# Builds a Debian package of a staged tree, which it completes: deb.sh NAME TREE VERSION GLIBC FOLDER
set -euo pipefail
[ $# -eq 5 ] || { sed -n '2s/^# \?//p' "$0" >&2; exit 2; }
name=$1 root=$2 version=$3 glibc=$4 out=$5
cd "$(dirname "$0")/.."
arch=$(dpkg --print-architecture)
umask 022
chmod 755 "$root"

doc=$root/usr/share/doc/$name
install -Dm644 packaging/debian/copyright "$doc/copyright"
# A package without a Debian revision has a single changelog, in Debian's format.
date=$(date --rfc-email --date "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}")
maintainer=$(sed -n 's/^Maintainer: //p' "packaging/debian/$name.control")
gzip -9n >"$doc/changelog.gz" <<END
$name ($version) unstable; urgency=medium

  * Version $version: see CHANGELOG.md in the sources for the changes.

 -- $maintainer  $date
END
install -d "$root/DEBIAN"
size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
for file in control shlibs triggers; do
    if [ ! -e "packaging/debian/$name.$file" ]; then continue; fi
    sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/; s/@GLIBC@/$glibc/" \
        "packaging/debian/$name.$file" >"$root/DEBIAN/$file"
done
for script in postinst postrm; do
    if [ ! -e "packaging/debian/$name.$script" ]; then continue; fi
    install -m755 "packaging/debian/$name.$script" "$root/DEBIAN/$script"
done
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "$out/${name}_${version}_$arch.deb"
