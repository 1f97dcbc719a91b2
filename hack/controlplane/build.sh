#!/usr/bin/env bash
# Puts etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok into bin/k8s.
# The programs of Kubernetes are downloaded from the release if that is possible and their checksums
# match. Everything else, or everything without a network, is built from Go modules. Does nothing if
# the stamp there names the same versions.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-"$here/../../bin/k8s"}
cd "$here"

version() { go list -m -f '{{.Version}}' "$1"; }
kubernetes=$(version k8s.io/kubernetes)
etcd=$(version go.etcd.io/etcd/server/v3)
kwok=$(version sigs.k8s.io/kwok)
stamp="kubernetes $kubernetes, etcd $etcd, kwok $kwok, $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"

if [ "$(cat "$out/versions" 2>/dev/null)" = "$stamp" ]; then
  echo "control plane: $stamp (present)"
  exit 0
fi

echo "control plane: $stamp"
mkdir -p "$out"
flags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1"
flags="$flags -X k8s.io/component-base/version.gitMinor=$(echo "$kubernetes" | cut -d. -f2) -X sigs.k8s.io/kwok/pkg/consts.Version=$kwok"

# If a download fails, this program and all after it are built.
set -- kube-apiserver kube-controller-manager kube-scheduler kubectl
while [ $# -gt 0 ]; do
  if ! why=$(./download.sh "$kubernetes" "$1" "$out/$1" 2>&1); then
    echo "  no download: $why"
    break
  fi
  echo "  downloaded $1"
  shift
done
if [ $# = 0 ]; then
  echo "  etcd and kwok are built from Go modules, once: about a minute on two cores"
else
  echo "  etcd, kwok, $* are built from Go modules, once: about six minutes on two cores"
fi

# Build everything in parallel: while one core links a program, the other one compiles.
started=$(date +%s)
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/" go.etcd.io/etcd/server/v3 sigs.k8s.io/kwok/cmd/kwok "${@/#/k8s.io/kubernetes/cmd/}" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true' EXIT
while kill -0 "$pid" 2>/dev/null; do
  sleep 1
  [ ! -t 1 ] || printf '\r  %d s' "$(($(date +%s) - started))"
done
wait "$pid"
trap - EXIT
[ ! -t 1 ] || printf '\r'
printf '  built in %d s\n' "$(($(date +%s) - started))"
mv "$out/server" "$out/etcd" # it is named after its folder
echo "$stamp" >"$out/versions"
