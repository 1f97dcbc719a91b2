#!/usr/bin/env bash
# Fails where an image has anything but one program in a layer: so no setuid file, no file capability, no shell, no package
# manager. It reads OCI archives and what `docker save` writes: make scan IMAGES=dist/manager.tar
set -euo pipefail

if (($# == 0)); then
  echo "NOT SCANNED: no image archive was given. docker save IMG -o dist/manager.tar; make scan IMAGES=dist/manager.tar"
  exit 3
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
for image in "$@"; do
  rm -rf "${folder:?}"/*
  tar -xf "$image" -C "$folder"
  # What is no JSON is a layer; older versions of docker add the version of the format.
  layers=$(find "$folder" -type f ! -name VERSION -exec sh -c 'case $(head -c 1 "$1") in [{[]) false ;; esac' sh {} ';' -print)
  [ -n "$layers" ] || { echo "$image: no layer"; status=1; }
  for layer in $layers; do
    files=$(tar --xattrs --xattrs-include='*' --numeric-owner -tvf "$layer")
    echo "$image: $files"
    [[ $files =~ ^-rwxr-xr-x\ +0/0\ [^$'\n']*\ /?(manager|agent)$ ]] || { echo "  is not one program"; status=1; }
  done
done
exit $status
