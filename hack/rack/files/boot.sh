#!/bin/sh
# One boot of a machine, in a mount namespace that goes with it. Exit status 133 asks for another.
# From the environment: BASE is its file system, NETWORK its network namespace, RACK what it gets from outside.
set -eu
for cgroup in $CGROUPS; do
  echo $$ >"$cgroup/cgroup.procs"
done
mount -t overlay rack -o "lowerdir=$BASE,upperdir=$FOLDER/changes,workdir=$FOLDER/work" "$FOLDER/root"
# What containers of its own are unpacked on cannot be an overlay itself.
exec systemd-nspawn --quiet --boot --directory="$FOLDER/root" --machine="$NAME" \
  --register=no --keep-unit --console=read-only --link-journal=no --resolv-conf=off --timezone=off \
  --capability=all --network-namespace-path="$NETWORK" \
  --bind="$FOLDER/containerd:/var/lib/containerd" --bind="$FOLDER/kubelet:/var/lib/kubelet" --bind-ro="$RACK:/opt/rack"
