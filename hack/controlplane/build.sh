#!/usr/bin/env bash
# Builds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok from Go modules into bin/k8s.
# Skipped when the stamp there names the same versions. About 6 minutes cold on two cores.
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

echo "control plane: building $stamp"
mkdir -p "$out"
flags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/component-base/version.gitMajor=1"
flags="$flags -X k8s.io/component-base/version.gitMinor=$(echo "$kubernetes" | cut -d. -f2) -X sigs.k8s.io/kwok/pkg/consts.Version=$kwok"

step=0
build() {
  step=$((step + 1))
  started=$(date +%s)
  printf '  [%d/6] %-24s ' "$step" "$1"
  CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$out/$1" "$2" &
  pid=$!
  trap 'kill "$pid" 2>/dev/null || true' EXIT
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    [ ! -t 1 ] || printf '\r  [%d/6] %-24s %3d s' "$step" "$1" "$(($(date +%s) - started))"
  done
  wait "$pid"
  trap - EXIT
  if [ -t 1 ]; then printf '\r  [%d/6] %-24s ' "$step" "$1"; fi
  printf '%3d s\n' "$(($(date +%s) - started))"
}

build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
build kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
build kubectl k8s.io/kubernetes/cmd/kubectl
build kwok sigs.k8s.io/kwok/cmd/kwok
echo "$stamp" >"$out/versions"
