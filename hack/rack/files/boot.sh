#!/bin/sh
# Runs one boot of a machine, in a mount namespace that ends with it. Exit status 133 requests
# another boot. In the environment, BASE is the machine's file system, NETWORK its network
# namespace, and RACK the files it gets from outside.
set -eu
for cgroup in $CGROUPS; do
  echo $$ >"$cgroup/cgroup.procs"
done
mount -t overlay rack -o "lowerdir=$BASE,upperdir=$FOLDER/changes,workdir=$FOLDER/work" "$FOLDER/root"
# Containers cannot be unpacked on an overlay file system.
exec systemd-nspawn --quiet --boot --directory="$FOLDER/root" --machine="$NAME" \
  --register=no --keep-unit --console=read-only --link-journal=no --resolv-conf=off --timezone=off \
  --capability=all --network-namespace-path="$NETWORK" \
  --bind="$FOLDER/containerd:/var/lib/containerd" --bind="$FOLDER/kubelet:/var/lib/kubelet" --bind-ro="$RACK:/opt/rack"
