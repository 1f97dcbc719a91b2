#!/usr/bin/env bash
# Downloads a program of a Kubernetes release: download.sh VERSION NAME FILE. It fails without
# leaving a file if the server does not answer within three seconds, does not have the program, or
# publishes another checksum. KUBE_MIRROR is another address with the same folders.
set -euo pipefail
version=$1 name=$2 file=$3
program=${KUBE_MIRROR:-https://dl.k8s.io}/$version/bin/$(go env GOOS)/$(go env GOARCH)/$name

# Give up if an answer does not begin within three seconds, or if the body stalls for nine, because
# curl averages the speed over several seconds. Below 100 kB/s building is faster.
get() { curl --fail --silent --show-error --location --connect-timeout 3 --speed-limit 100000 --speed-time 3 "$@"; }

command -v curl >/dev/null || { echo "curl is not installed" >&2; exit 1; }
trap 'rm -f "$file.part"' EXIT
want=$(get "$program.sha256")
get --output "$file.part" "$program"
got=$(sha256sum "$file.part" | cut -d' ' -f1)
if [ "$got" != "$want" ]; then
  echo "$program has checksum $got, and $want is published" >&2
  exit 1
fi
chmod +x "$file.part"
mv "$file.part" "$file"
