#!/bin/sh
# run.sh FOLDER RATE DELAY QUEUE CONTROL FLOWS SECONDS [LOSS]: one cell of the matrix in virtual time. FOLDER is that of build.sh;
# the results stay there, in `results`.
set -e
[ $# -ge 7 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
here=$(dirname "$(realpath "$0")")
folder=$(realpath "$1")
results=$folder/results
mkdir -p "$results"
rm -f "$results"/*
# Unknown words of the kernel's command line become variables of its first process. Spaces would end them.
"$folder/linux" rootfstype=hostfs rootflags=/ ro init="$here/init.sh" mem=512M time-travel=inf-cpu quiet \
    con=null con0=null,fd:1 ssl=null TRAFFIC="$folder/traffic" RESULTS="$results" RATE="$2" DELAY="$3" \
    QUEUE="$(echo "$4" | tr ' ' +)" CONTROL="$5" FLOWS="$6" SECONDS_="$7" LOSS="$8" </dev/null >"$folder/console" 2>&1
cat "$results/goodput"
sort -n -k2 "$results/call" | awk '{ sum += $2; delay[NR] = $2 }
    END { printf "call: %d packets, mean %.2f ms, p99 %.2f ms\n", NR, sum / NR, delay[int(NR * 0.99)] }'
