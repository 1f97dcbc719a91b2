#!/usr/bin/env bash
# Prepares what the suite needs in bin/e2e, each part once: Debian packages of this machine, the
# control plane and a kubelet, two Debian root file systems, and this checkout's programs. The first
# run takes minutes and shows its steps. With --why-not it prints why the suite cannot run here, or
# nothing if it can.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# has_controllers reports whether cgroup v2 has the controllers that kubelets need.
has_controllers() {
  local wanted
  for wanted in cpu memory pids; do
    grep -qw "$wanted" /sys/fs/cgroup/cgroup.controllers || return 1
  done
}

why_not() {
  if [ "$(uname -s)" != Linux ]; then
    echo "this is not Linux"
  elif [ "$(id -u)" != 0 ]; then
    echo "it needs root: machines are containers that boot"
  elif ! command -v apt-get >/dev/null; then
    echo "it needs Debian's packages, and apt-get is missing"
  elif [ -e /sys/fs/cgroup/cgroup.controllers ] && ! has_controllers; then
    echo "it needs the cgroup v2 controllers cpu, memory and pids, but only these exist: $(xargs </sys/fs/cgroup/cgroup.controllers)"
  elif [ ! -e /sys/fs/cgroup/cgroup.controllers ] && [ ! -d /sys/fs/cgroup/systemd ]; then
    echo "it needs cgroup v2, or v1 hierarchies including systemd's, in /sys/fs/cgroup"
  elif [ ! -w /sys/fs/cgroup ]; then
    echo "it needs writable cgroups: run it outside of a container, or in a privileged one"
  elif ! unshare --mount --net true 2>/dev/null; then
    echo "it may not create namespaces: run it outside of a container, or in a privileged one"
  fi
}
if [ "${1:-}" = --why-not ]; then
  why_not
  exit 0
fi
reason=$(why_not)
[ -z "$reason" ] || { echo "e2e: cannot be prepared: $reason" >&2; exit 1; }

out=bin/e2e
mkdir -p "$out"
log=$out/prepare.log
: >"$log"

# step NAME COMMAND… runs a command and shows its time. It only shows the output if the command
# fails.
step() {
  local name=$1 started=$SECONDS pid
  shift
  set -m # in its own process group, so that all of it ends on an interrupt
  "$@" >>"$log" 2>&1 &
  pid=$!
  set +m
  trap 'kill -- "-$pid" 2>/dev/null || true' EXIT
  while kill -0 "$pid" 2>/dev/null; do
    [ ! -t 1 ] || printf '\r  %-44s %3d s' "$name" $((SECONDS - started))
    sleep 0.2
  done
  trap - EXIT
  [ ! -t 1 ] || printf '\r'
  wait "$pid" || { printf '  %-44s failed\n' "$name"; tail -n 40 "$log" >&2; exit 1; }
  printf '  %-44s %3d s\n' "$name" $((SECONDS - started))
}

packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install --yes --no-install-recommends systemd-container mmdebstrap iproute2 util-linux debian-archive-keyring
}
for program in systemd-nspawn mmdebstrap ip nsenter unshare; do
  command -v "$program" >/dev/null || { step "packages systemd-container, mmdebstrap" packages; break; }
done

hack/controlplane/build.sh
[ -z "${RELEASE:-}" ] || hack/helm/build.sh

# fresh FILE STAMP reports whether FILE was made with STAMP.
fresh() { [ "$(cat "$1.stamp" 2>/dev/null)" = "$2" ]; }

kubelet() {
  CGO_ENABLED=0 go -C hack/controlplane build -trimpath -o "$PWD/$out/kubelet" -ldflags \
    "-s -w -X k8s.io/component-base/version.gitVersion=$1 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$1")" \
    k8s.io/kubernetes/cmd/kubelet
  echo "$2" >"$out/kubelet.stamp"
}
version=$(go -C hack/controlplane list -m -f '{{.Version}}' k8s.io/kubernetes)
stamp="kubelet $version, $(go env GOVERSION GOARCH | xargs)"
fresh "$out/kubelet" "$stamp" || step "kubelet $version" kubelet "$version" "$stamp"

# root SUITE creates a root file system with systemd, logind, containerd, CNI plugins and
# unattended-upgrades.
root_packages=systemd,systemd-sysv,dbus,libpam-systemd,util-linux,mount,iproute2,procps,containerd,runc,containernetworking-plugins,unattended-upgrades
root() {
  rm -rf --one-file-system "$out/$1" "$out/$1.stamp"
  mmdebstrap --variant=minbase --include="$root_packages" \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists "$1"/var/cache/apt "$1"/etc/hostname "$1"/etc/resolv.conf' \
    --customize-hook=': >"$1"/etc/machine-id; rm -f "$1"/etc/systemd/system/timers.target.wants/*' \
    "$1" "$out/$1" "deb http://deb.debian.org/debian $1 main"
  echo "$2" >"$out/$1.stamp"
}
for suite in bookworm trixie; do
  stamp="$suite: $root_packages"
  fresh "$out/$suite" "$stamp" || step "Debian $suite, a root file system" root "$suite" "$stamp"
done

# Built like in the Dockerfile, because they go into its images.
programs() {
  version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
  build() { CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w $3" "${@:4}" -o "$out/$1" "$2"; }
  if [ -z "${RELEASE:-}" ]; then # otherwise they are in its images
    build manager . "-X github.com/reboot-operator/reboot-operator/controllers.Version=$version"
    build agent ./agent "-X main.version=$version"
  fi
  build update-engine ./hack/rack/updateengine ""
  build idle ./hack/rack/idle ""
}
step "programs" programs
