#!/usr/bin/env bash
# Builds Karpenter with its kwok provider, and the descheduler, from Go modules into bin/neighbours,
# with Karpenter's CustomResourceDefinitions. Does nothing if the stamp there names the same
# versions. The first build takes about 7 minutes on two cores.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-"$here/../../bin/neighbours"}
cd "$here"

version() { go list -m -f '{{.Version}}' "$1"; }
stamp="karpenter $(version sigs.k8s.io/karpenter), descheduler $(version sigs.k8s.io/descheduler), $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"

if [ "$(cat "$out/versions" 2>/dev/null)" = "$stamp" ]; then
  echo "neighbours: $stamp (present)"
  exit 0
fi

echo "neighbours: building $stamp"
mkdir -p "$out/crds"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$out/" sigs.k8s.io/karpenter/kwok sigs.k8s.io/descheduler/cmd/descheduler
mv "$out/kwok" "$out/karpenter" # it is named after its folder
karpenter=$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)
install -m 644 "$karpenter"/pkg/apis/crds/*.yaml "$karpenter"/kwok/apis/crds/*.yaml "$out/crds/"
echo "$stamp" >"$out/versions"
