# Debian packages, for the scripts that prepare a machine; they source this.

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
packages_updated=false

# Whether packages can be installed here without a prompt.
can_install_packages() {
    command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null
}

# Installs packages; accepts apt-get's options.
install_packages() {
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive DPKG_MAINTSCRIPT_NO_START=1)
    if ! "$packages_updated"; then
        # After an interrupted installation, apt refuses all others.
        "${apt[@]}" dpkg --configure -a </dev/null >/dev/null || true
        "${as_root[@]}" apt-get update -qq || echo "setup: the package lists were not updated" >&2
        packages_updated=true
    fi
    "${apt[@]}" apt-get install -y -qq "$@" </dev/null >/dev/null
}
