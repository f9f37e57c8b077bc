#!/usr/bin/env bash
# Measures messages between two network namespaces, alternately through the link and through Zenoh alone.
# Needs root, and release builds:
#   cargo build --release -p rnet-net --features zenoh --bin rnet-link --example link_speed
#
#   link-speed.sh [ROUNDS]             cost of a message; 3 rounds by default
#   link-speed.sh keys [ROUNDS]        the same with and without keys, which RNET (target/release/rnet) makes
#   link-speed.sh urgent [ROUNDS]      urgent events at 100 Hz on an idle cable, and on one full of images;
#                                      fails if an event is missing
set -euo pipefail
cd "$(dirname "$0")/.."
work=speed
case ${1:-} in keys | urgent) work=$1 && shift ;; esac
readonly work rounds=${1:-3}
readonly program=$PWD/target/release/examples/link_speed
readonly place=$(mktemp -d /dev/shm/rnet-speed-XXXXXX)
readonly a=rnet-speed-a b=rnet-speed-b
export RNET_INSECURE=1 # network namespaces of this script only
export RNET_LINK=$PWD/target/release/rnet-link

end() {
    ip netns pids "$a" 2>/dev/null | xargs -r kill -9 || true
    ip netns pids "$b" 2>/dev/null | xargs -r kill -9 || true
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$place"
}
trap end EXIT
end
mkdir -p "$place"/{a,b}{,-keys}
systems="rnet zenoh"
if [ "$work" = keys ]; then
    systems="rnet keys"
    rnet_keys() { RNET_KEYS=$place/a.pem "${RNET:-target/release/rnet}" keys "$@" --authority "$place/ca" >/dev/null; }
    rnet_keys init --name a
    rnet_keys add-host b -o "$place/b.pem"
fi
ip netns add "$a"
ip netns add "$b"
ip link add veth-a netns "$a" type veth peer name veth-b netns "$b"
for side in a:10.77.0.1 b:10.77.0.2; do
    ip -n "rnet-speed-${side%%:*}" addr add "${side#*:}/24" dev "veth-${side%%:*}"
    ip -n "rnet-speed-${side%%:*}" link set "veth-${side%%:*}" up
    ip -n "rnet-speed-${side%%:*}" link set lo up
done

# in HOST COMMAND...: with the environment of a robot on that host
in_host() {
    local host=$1
    shift
    local settings=(RNET_DIR="$place/$host" RNET_HOST="$host") port=7450
    if [ "$keys" = 1 ]; then
        settings=(RNET_DIR="$place/$host-keys" RNET_KEYS="$place/$host.pem" RNET_INSECURE=0)
        port=7470
    fi
    if [ "$host" = a ]; then
        settings+=("RNET_LISTEN=tcp/10.77.0.1:$port")
    else
        settings+=("RNET_CONNECT=tcp/10.77.0.1:$port")
    fi
    ip netns exec "rnet-speed-$host" env "${settings[@]}" "$@"
}

keys=0
measure() { # SYSTEM LEN COUNT HZ; prints the result on a line
    local keys=0 system=$1
    [ "$1" != keys ] || { keys=1 && system=rnet; }
    in_host a "$program" "$system" receive "$2" "$3" "$4" tcp/10.77.0.1:7460 >"$place/out" &
    local receiver=$!
    [ "$1" != zenoh ] || sleep 0.5
    in_host b "$program" "$system" send "$2" "$3" "$4" tcp/10.77.0.1:7460 >/dev/null &
    wait "$receiver"
    wait
    # Until the links, which keep running, have told each other that both programs have exited.
    sleep 0.3
    echo "$1 $(cat "$place/out")"
}

# Limits the transmission rate of both hosts.
shape() { # RATE
    for side in a b; do
        tc -n "rnet-speed-$side" qdisc replace dev "veth-$side" root tbf rate "$1" burst 32kb latency 50ms
    done
}

if [ "$work" = urgent ]; then
    for _ in $(seq "$rounds"); do
        for rate in 20mbit 1gbit; do
            shape "$rate"
            for image in 0 1000000; do
                echo -n "$rate "
                measure urgent "$image" 1000 100
            done
        done
    done
    exit
fi

for _ in $(seq "$rounds"); do
    for job in "22 500000 0" "1024 300000 0" "1048576 500 0" "64 3000 1000"; do
        for system in $systems; do
            # shellcheck disable=SC2086
            measure "$system" $job
        done
    done
done
