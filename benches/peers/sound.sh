#!/usr/bin/env bash
# Mouth-to-ear delay and processor time of two channels over loopback, measured by sound:
#
#     sound.sh jacktrip|trunkline FRAMES SECONDS [OPTION...]
#
# Both ends are clients of one JACK server without a sound card, with FRAMES frames per period at 48 kHz. `jack_iodelay` plays tones
# into the sender and hears the receiver, so what it prints is the delay of the samples themselves, both JACK connections included.
# OPTION goes to the receiver. Prints a line of JSON: every delay in ms, readings without a clear tone, and processor seconds of both
# ends in SECONDS.
set -euo pipefail
who=$1 frames=$2 seconds=$3
shift 3
export JACK_DEFAULT_SERVER=trunkline-peers-$$ JACK_NO_AUDIO_RESERVATION=1
folder=$(mktemp -d)
started=()
# One after the other, the server last: one that ends before its clients stays in JACK's registry, which has eight places.
finish() {
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        kill "${started[i]}" 2>/dev/null || true
        wait "${started[i]}" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap finish EXIT
start() {
    "$@" >"$folder/$(basename "$1").${#started[@]}" 2>&1 &
    started+=($!)
}
fail() {
    echo "sound.sh: $1" >&2
    tail -n 5 "$folder"/* >&2
    exit 1
}
# port PATTERN: the name of a port, once it is there
port() {
    local found
    for _ in $(seq 100); do
        found=$(jack_lsp 2>/dev/null | grep -m1 -E "$1") && echo "$found" && return
        sleep 0.1
    done
    fail "there is no port $1"
}
# Processor seconds that a process has used
used() { awk -v tick="$(getconf CLK_TCK)" '{ print ($14 + $15) / tick }' "/proc/$1/stat"; }

start jackd --no-mlock --name "$JACK_DEFAULT_SERVER" -d dummy --rate 48000 --period "$frames"
port '^system:playback_1$' >/dev/null
case $who in
jacktrip)
    start jacktrip -s -n 2 -D -J far "$@"
    far=$!
    start jacktrip -c 127.0.0.1 -n 2 -D -J near -B 4474
    near=$!
    into='^near:send_1$' out='^far:receive_1$'
    ;;
trunkline)
    start "$TRUNKLINE" receive --listen 127.0.0.1:4790 --to jack: "$@"
    far=$!
    for _ in $(seq 100); do if grep -q 4790 "$folder"/*; then break; fi; sleep 0.1; done
    start "$TRUNKLINE" send 127.0.0.1:4790 --from jack: --rate 48000 --block "$frames"
    near=$!
    into='^trunkline.*:input_1$' out='^trunkline.*:output_1$'
    ;;
*) fail "jacktrip or trunkline, not $who" ;;
esac
start stdbuf -oL jack_iodelay
listens=$folder/stdbuf.$((${#started[@]} - 1))
into=$(port "$into") out=$(port "$out")
jack_connect jack_delay:out "$into" && jack_connect "$out" jack_delay:in || fail "the ports cannot be connected"
# Connections are made, then clocks and playout buffers settle.
for _ in $(seq 150); do if grep -q 'total roundtrip latency' "$listens"; then break; fi; sleep 0.1; done
sleep 4
begin=$(wc -l <"$listens")
before="$(used "$near") $(used "$far")"
sleep "$seconds"
after="$(used "$near") $(used "$far")"
tail -n +"$((begin + 1))" "$listens" | awk -v before="$before" -v after="$after" '
    / total roundtrip latency/ { delays = delays (n++ ? "," : "") $3; if (/\?\?|Inv/) unclear++ }
    /Signal below threshold/ { unclear++ }
    END {
        split(before, b, " "); split(after, a, " ")
        printf "{\"delays_ms\": [%s], \"unclear\": %d, \"cpu_s\": %.3f}\n", delays, unclear, a[1] + a[2] - b[1] - b[2]
    }'
