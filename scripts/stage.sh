#!/usr/bin/env bash
# Installs files under a directory: the command, manual pages, completions, systemd files, and the link
# between hosts if it is next to the command.
#
#   stage.sh BINARY ROOT PREFIX     such as: stage.sh target/release/rnet "$DESTDIR" /usr/local
set -euo pipefail
[ $# -eq 3 ] || { sed -n '2,5s/^# \?//p' "$0" >&2; exit 2; }
binary=$(realpath "$1")
root=$2$3
cd "$(dirname "$0")/.."

install -Dm755 "$binary" "$root/bin/rnet"
link=${binary%/*}/rnet-link
if [ -x "$link" ]; then
    install -m755 "$link" "$root/bin/rnet-link"
fi
install -d "$root/share/man/man1"
"$binary" man "$root/share/man/man1"
gzip -9nf "$root"/share/man/man1/*.1

completion() {
    install -d "$(dirname "$root/share/$2")"
    "$binary" completions "$1" >"$root/share/$2"
}
completion bash bash-completion/completions/rnet
completion zsh zsh/vendor-completions/_rnet
completion fish fish/vendor_completions.d/rnet.fish

install -Dm644 packaging/systemd/rnet-node@.service "$root/lib/systemd/system/rnet-node@.service"
install -Dm644 packaging/systemd/sysusers.conf "$root/lib/sysusers.d/rnet.conf"
install -Dm644 packaging/systemd/tmpfiles.conf "$root/lib/tmpfiles.d/rnet.conf"
