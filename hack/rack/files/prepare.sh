#!/bin/sh
# Runs before the kubelet. A container may not write some kernel settings, so files with the values
# that the kubelet would write are mounted over them.
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
# systemd-nspawn mounts the machine's boot ID from a deleted file, which cannot be mounted again,
# for example into a pod. Replace it by a mount of an existing file.
boot_id=/proc/sys/kernel/random/boot_id
id=$(cat "$boot_id")
while [ ! -e /run/shown/boot_id ] && umount "$boot_id" 2>/dev/null; do :; done
show "$boot_id" "$id"
