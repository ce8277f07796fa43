#!/bin/bash
# The first process of a full cluster's namespaces (bottle.py starts it): makes this machine look like a node.
# Nothing that is mounted or set here is seen outside.
#   TREE    Debian's parts for a node, unpacked      FOLDER  the cluster's own      NODE  how the node is called
set -euo pipefail

mount --make-rprivate /
mount -t proc proc /proc

# A /sys that shows this network, with the control groups of version 1 in it. Where version 2 is mounted among them
# (hybrid), kubelet and runc would take it for the one to use: it stays out.
groups=$FOLDER/groups
mkdir -p "$groups"
mount --rbind /sys/fs/cgroup "$groups"
umount "$groups/unified" 2>/dev/null || true
mount -t sysfs sysfs /sys
mount --rbind "$groups" /sys/fs/cgroup
umount --lazy "$groups"

# Debian's parts stand in their usual places, over what the machine has.
mount -t overlay -o "lowerdir=$TREE/usr:/usr" overlay /usr
for empty in /var/lib /var/log /run; do mount -t tmpfs tmpfs "$empty"; done
mkdir -p /run/lock /var/lib/cni /var/log/pods /var/log/containers /var/lib/kubelet /var/lib/containerd
# On a disk: containers' file systems do not belong into memory.
mkdir -p "$FOLDER/containerd" "$FOLDER/kubelet"
mount --bind "$FOLDER/containerd" /var/lib/containerd
mount --bind "$FOLDER/kubelet" /var/lib/kubelet

# Kubelet insists on settings that hold for the whole machine. It is shown files that say so; the machine keeps its own.
pretend() {
    local shown
    shown=/run/lock/$(basename "$1")
    echo "$2" >"$shown"
    mount --bind "$shown" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000

mount --make-rshared / # volumes that kubelet mounts have to appear in containers
hostname "$NODE"
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
    echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
fi

touch "$FOLDER/bottle-ready"
exec /usr/bin/tini-static -- sleep infinity
