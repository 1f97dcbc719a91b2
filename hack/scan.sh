#!/usr/bin/env bash
# Fails if an image contains anything but one program in one layer, such as setuid files, file
# capabilities, a shell or a package manager. It reads OCI archives and the output of `docker save`:
# make scan IMAGES=dist/manager.tar
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
  # Everything that is not JSON is a layer. Older versions of docker add a file with the version of
  # the format.
  layers=$(find "$folder" -type f ! -name VERSION -exec sh -c 'case $(head -c 1 "$1") in [{[]) false ;; esac' sh {} ';' -print)
  [ -n "$layers" ] || { echo "$image: no layer"; status=1; }
  for layer in $layers; do
    files=$(tar --xattrs --xattrs-include='*' --numeric-owner -tvf "$layer")
    echo "$image: $files"
    [[ $files =~ ^-rwxr-xr-x\ +0/0\ [^$'\n']*\ /?(manager|agent)$ ]] || { echo "  is not a single program"; status=1; }
  done
done
exit $status
