#!/bin/sh
# Before the kubelet: what a container may not write of the kernel it shares is shown to it as it would write it.
set -eu
[ -e /dev/kmsg ] || ln -s /dev/null /dev/kmsg
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
  [ -L "$hierarchy" ] || ! mountpoint -q "$hierarchy" || mount -o remount,rw,bind "$hierarchy" || true
done
mkdir -p /run/shown
show() {
  shown=/run/shown/$(basename "$1")
  [ ! -e "$shown" ] || return 0
  echo "$2" >"$shown"
  mount --bind "$shown" "$1"
}
show /proc/sys/vm/overcommit_memory 1
show /proc/sys/kernel/panic 10
show /proc/sys/kernel/panic_on_oops 1
# systemd-nspawn shows the machine a boot ID of its own in a file that it has deleted, and nothing deleted is mounted a second
# time: into a pod, say. So it is taken away, and shown again.
boot_id=/proc/sys/kernel/random/boot_id
id=$(cat "$boot_id")
while [ ! -e /run/shown/boot_id ] && umount "$boot_id" 2>/dev/null; do :; done
show "$boot_id" "$id"
