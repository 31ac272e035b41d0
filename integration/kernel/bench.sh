#!/bin/sh
# Runs in the guest, started by bench_test.go: measures what a client gets from
# four servers through each of several boxes in between. It prints lines
# "result BOX MEASURE REQUESTS-PER-SECOND".
#
#   client 10.20.0.10 ── box ── servers 10.30.0.11:8080 to 10.30.0.14:8080
#                         └ VIP 10.20.0.100:80
#
# Each box has a network of its own: the namespaces BOX, BOX-client and
# BOX-servers, and in the box a veth "c" to the client and "s" to the servers.
# Nothing differs but who forwards. brlb has two pools, one by the hash of the
# 5-tuple, at port 80, and one by the clients' ports, at port 81. The processes of
# all boxes run all the time.
set -eu
rounds=$1 seconds=$2
vip=10.20.0.100

# world BOX: the namespaces, the links and the servers.
world() {
	for ns in "$1" "$1-client" "$1-servers"; do
		ip netns add "$ns"
		ip -n "$ns" link set lo up
	done
	link "$1" c "$1-client" 10.20.0.10/24
	link "$1" s "$1-servers" 10.30.0.11/24 10.30.0.12/24 10.30.0.13/24 10.30.0.14/24
	ip -n "$1-servers" route add default via 10.30.0.1
	serve "$1-servers"
}

# link BOX DEVICE NAMESPACE ADDRESS...
link() {
	box=$1 device=$2 ns=$3
	shift 3
	ip -n "$box" link add "$device" type veth peer name eth0 netns "$ns"
	ip -n "$box" link set "$device" up
	for address in "$@"; do
		ip -n "$ns" address add "$address" dev eth0
	done
	ip -n "$ns" link set eth0 up
}

# serve NAMESPACE: an nginx that answers two octets.
serve() {
	cat >"/run/$1.conf" <<END
pid /run/$1.pid;
error_log stderr warn;
worker_processes 1;
events { worker_connections 1024; }
http {
	access_log off;
	keepalive_requests 1000000000;
	server {
		listen 8080 backlog=4096;
		location / { return 200 "ok"; }
	}
}
END
	ip netns exec "$1" nginx -c "/run/$1.conf"
}

# route BOX: the box forwards like a router.
route() {
	ip netns exec "$1" sysctl -qw net.ipv4.ip_forward=1
	ip -n "$1" address add 10.20.0.1/24 dev c
	ip -n "$1" address add 10.30.0.1/24 dev s
}

box_direct() {
	route direct
	ip -n direct-client route add 10.30.0.0/24 via 10.20.0.1
}

box_nft() {
	route nft
	ip -n nft address add $vip/32 dev c
	ip netns exec nft nft -f - <<END
table ip lb {
	chain prerouting {
		type nat hook prerouting priority dstnat;
		ip daddr $vip tcp dport 80 dnat to jhash ip saddr . tcp sport mod 4 map {
			0 : 10.30.0.11 . 8080, 1 : 10.30.0.12 . 8080, 2 : 10.30.0.13 . 8080, 3 : 10.30.0.14 . 8080 }
	}
}
END
}

box_haproxy() {
	route haproxy
	ip -n haproxy address add $vip/32 dev c
	cat >/run/haproxy.cfg <<END
global
	maxconn 10000
defaults
	mode tcp
	timeout connect 5s
	timeout client 60s
	timeout server 60s
listen web
	bind $vip:80 backlog 4096
	balance roundrobin
	server be1 10.30.0.11:8080
	server be2 10.30.0.12:8080
	server be3 10.30.0.13:8080
	server be4 10.30.0.14:8080
END
	ip netns exec haproxy haproxy -D -f /run/haproxy.cfg -p /run/haproxy.pid
}

box_brlb() {
	export OVS_RUNDIR=/run/ovs OVS_LOGDIR=/run/ovs OVS_DBDIR=/run/ovs
	mkdir -p /run/ovs
	ovsdb-tool create /run/ovs/conf.db /usr/share/openvswitch/vswitch.ovsschema
	ip netns exec brlb ovsdb-server /run/ovs/conf.db --remote=punix:/run/ovs/db.sock --pidfile --log-file -vconsole:off --detach --no-chdir
	ovs-vsctl --no-wait init
	# Open vSwitch started earlier has no handler threads.
	while [ "$(cut -d. -f1 /proc/uptime)" -lt 11 ]; do sleep 0.2; done
	ip netns exec brlb ovs-vswitchd --pidfile --log-file -vconsole:off --detach --no-chdir
	ovs-vsctl add-br br-lb -- set bridge br-lb datapath_type=system fail_mode=secure
	for port in c s; do
		ovs-vsctl add-port br-lb $port
		ip netns exec brlb sysctl -qw net.ipv6.conf.$port.disable_ipv6=1
	done
	ip -n brlb address add 10.30.0.2/24 dev br-lb
	ip -n brlb link set br-lb up
	cat >/run/brlb.yaml <<END
run_dir: /run/ovs
api: {socket: /run/brlb.sock, http: ""}
gateways: [10.30.0.1/24]
pools:
  web:
    id: 1
    slots: 256
    members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080, be3: 10.30.0.13:8080, be4: 10.30.0.14:8080}
  port:
    id: 2
    slots: 256
    affinity: port
    members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080, be3: 10.30.0.13:8080, be4: 10.30.0.14:8080}
services:
  web: {address: $vip, ports: [80/tcp], pool: web}
  port: {address: $vip, ports: [81/tcp], pool: port}
END
	ip netns exec brlb ./brlb run --config /run/brlb.yaml >/run/brlb.log 2>&1 &
	for try in $(seq 100); do
		./brlb status --socket /run/brlb.sock 2>/dev/null | grep -c "4/4 active.*in sync" | grep -qx 2 && return
		sleep 0.3
	done
	echo "brlb has no table after 30 s:"
	./brlb status --socket /run/brlb.sock || true
	tail -n 30 /run/brlb.log
	exit 1
}

# load BOX WRK-ARGUMENTS...
load() {
	case $1 in
	brlb-port) box=brlb target=http://$vip:81/ ;;
	direct) box=$1 target=http://10.30.0.11:8080/ ;;
	*) box=$1 target=http://$vip/ ;;
	esac
	shift
	ip netns exec "$box-client" wrk -t 1 -c 16 -d "${seconds}s" "$@" "$target" >/run/wrk.out
}

# measure BOX MEASURE WRK-ARGUMENTS...
measure() {
	name=$1 measure=$2
	shift 2
	load "$name" "$@"
	if grep -q "Socket errors\|Non-2xx" /run/wrk.out; then
		echo "$name $measure: $(grep "Socket errors\|Non-2xx" /run/wrk.out)"
	fi
	echo "result $name $measure $(sed -n 's/^Requests\/sec: *//p' /run/wrk.out)"
}

sysctl -qw net.netfilter.nf_conntrack_max=1000000
for box in brlb haproxy nft direct; do
	world "$box"
	"box_$box"
done
for round in $(seq "$rounds"); do
	for name in brlb brlb-port haproxy nft direct; do
		measure "$name" keep-alive
		# Not measured: caches get what they hold under this load.
		load "$name" -H "Connection: close"
		measure "$name" connections -H "Connection: close"
	done
done
