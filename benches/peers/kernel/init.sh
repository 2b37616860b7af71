#!/bin/sh
# The first process of the kernel that run.sh starts. The network is home - near - far - server; the bottleneck leaves `near`.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mkdir /run/netns
mount -t tmpfs tmpfs /mnt
mount -t hostfs none /mnt -o "$RESULTS"
for host in home near far server; do
    ip netns add $host
    ip -n $host link set lo up
done
join() { # HOST INTERFACE ADDRESS, twice
    ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
    ip -n "$1" addr add "$3/24" dev "$2"
    ip -n "$4" addr add "$6/24" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}
join home out 10.1.0.1 near in 10.1.0.2
join near out 10.2.0.1 far in 10.2.0.2
join far out 10.3.0.1 server in 10.3.0.2
ip -n home route add default via 10.1.0.2
ip -n near route add 10.3.0.0/24 via 10.2.0.2
ip -n far route add 10.1.0.0/24 via 10.2.0.1
ip -n server route add default via 10.3.0.1
for host in near far; do ip netns exec $host sysctl -qw net.ipv4.ip_forward=1; done
# The simulator counts bytes from the IP header on, the kernel from Ethernet's.
tc -n near qdisc add dev out root handle 1: stab overhead -14 linklayer ethernet tbf rate "$RATE" burst 1540 limit 100000000
tc -n near qdisc add dev out parent 1:1 $(echo "$QUEUE" | tr + ' ')
tc -n far qdisc add dev out root netem delay "$DELAY" ${LOSS:+loss $LOSS} limit 100000
tc -n near qdisc add dev in root netem delay "$DELAY" limit 100000
ip netns exec home ping -c 1 10.3.0.2 >/dev/null
# PIE adjusts its probability for the first time half a second after it was made.
sleep 1
ip netns exec server "$TRAFFIC" sink 5001 "$FLOWS" "$SECONDS_" >/mnt/goodput &
sink=$!
ip netns exec server "$TRAFFIC" listen 6001 >/mnt/call &
call=$!
sleep 0.01
for flow in $(seq "$FLOWS"); do
    ip netns exec home "$TRAFFIC" bulk 10.3.0.2 5001 "$CONTROL" "$SECONDS_" "/mnt/window-$flow" &
done
# Slow start is over.
sleep 1
ip netns exec home "$TRAFFIC" call 10.3.0.2 6001 $((SECONDS_ - 1))
wait $call
wait $sink
ip netns exec home cat /proc/net/netstat /proc/net/snmp >/mnt/counters
tc -n near -s qdisc show dev out >/mnt/queue
umount /mnt
poweroff -f
