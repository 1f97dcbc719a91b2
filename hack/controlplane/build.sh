#!/usr/bin/env bash
# Puts etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok into bin/k8s: those of Kubernetes from the
# release, where it can be downloaded and its checksums match, and the others built from Go modules, as are all without a network.
# Skipped when the stamp there names the same versions.
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

step=0
next() {
  step=$((step + 1))
  started=$(date +%s)
  printf '  [%d/6] %-24s ' "$step" "$1"
}

# release downloads a program of the Kubernetes release, or builds it, as all that follow once one could not be downloaded.
downloads=yes
release() {
  if [ $downloads = yes ]; then
    if why=$(./download.sh "$kubernetes" "$1" "$out/$1" 2>&1); then
      next "$1"
      echo "downloaded"
      return
    fi
    downloads=no
    echo "  no download: $why"
    echo "  building Kubernetes from Go modules instead, once: about six minutes on two cores"
  fi
  build "$1" "$2"
}

build() {
  next "$1"
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

echo "  etcd and kwok are built from Go modules, once: about a minute on two cores"
build etcd go.etcd.io/etcd/server/v3
release kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
release kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
release kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
release kubectl k8s.io/kubernetes/cmd/kubectl
build kwok sigs.k8s.io/kwok/cmd/kwok
echo "$stamp" >"$out/versions"
