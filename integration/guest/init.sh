#!/bin/sh
# The guest's first process: what a system needs, then the script of the run,
# whose output goes to the second serial port and whose exit status to the
# third.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
for dir in /dev/shm /run /tmp /var/log; do
	mount -t tmpfs tmpfs "$dir"
done
hostname guest
ip link set lo up
modprobe -a openvswitch sctp
stty -F /dev/ttyS1 raw
cd /guest || exit
sh run </dev/null >/dev/ttyS1 2>&1
echo $? >/dev/ttyS2
# A restart ends the guest.
echo b >/proc/sysrq-trigger
