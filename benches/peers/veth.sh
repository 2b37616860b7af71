#!/usr/bin/env bash
# Two namespaces joined by a veth pair and nothing else: `veth.sh SERVER -- CLIENT...` runs SERVER (a shell line) in one and CLIENT in
# the other, where the server is 10.77.0.2.
set -euo pipefail
server=$1
shift 2
here=trunkline-peers-$$
finish() {
    kill "$beside" 2>/dev/null || true
    wait 2>/dev/null || true
    ip netns del "$here-a" 2>/dev/null || true
    ip netns del "$here-b" 2>/dev/null || true
}
beside=
trap finish EXIT
ip netns add "$here-a"
ip netns add "$here-b"
ip -n "$here-a" link add name line type veth peer name line netns "$here-b"
ip -n "$here-a" addr add 10.77.0.1/24 dev line
ip -n "$here-b" addr add 10.77.0.2/24 dev line
ip -n "$here-a" link set line up
ip -n "$here-b" link set line up
ip netns exec "$here-b" sh -c "exec $server" >/dev/null &
beside=$!
sleep 0.5
ip netns exec "$here-a" "$@"
