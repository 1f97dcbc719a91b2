#!/usr/bin/env bash
# Puts a control plane of another minor version into a folder: build.sh v1.31.14 FOLDER. The API
# server, the controllers and the scheduler are downloaded from the release if possible, and
# otherwise built from Go modules. etcd, kubectl and kwok are those of bin/k8s.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$1 out=$2
programs="kube-apiserver kube-controller-manager kube-scheduler"
stamp="kubernetes $version, $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"

mkdir -p "$out"
out=$(cd "$out" && pwd)
for program in etcd kubectl kwok; do ln -sf "../../k8s/$program" "$out/$program"; done
if [ "$(cat "$out/versions" 2>/dev/null)" = "$stamp" ]; then
  echo "control plane: $stamp (present)"
  exit 0
fi

echo "control plane: $stamp"
downloaded=yes
for program in $programs; do
  "$here/../controlplane/download.sh" "$version" "$program" "$out/$program" || { downloaded=no; break; }
done
if [ $downloaded = no ]; then
  echo "  building it from Go modules instead, once: about six minutes on two cores"
  # A module that only requires this version. Its staging modules are replaced by their releases for
  # this version, or by the newest earlier ones if a proxy does not have those.
  module=$(mktemp -d)
  trap 'rm -rf "$module"' EXIT
  cd "$module"
  required=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
  {
    printf 'module versions\n\n'
    grep -E '^(go|godebug) ' "$required"
    printf '\nrequire k8s.io/kubernetes %s\n\n' "$version"
    for staging in $(sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p" "$required"); do
      release=$(go list -m -f '{{.Version}}' "$staging@<=v0${version#v1}" 2>/dev/null || echo "v0${version#v1}") # some are never read
      echo "replace $staging => $staging $release"
    done
  } >go.mod
  flags="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1"
  flags="$flags -X k8s.io/component-base/version.gitMinor=$(echo "$version" | cut -d. -f2)"
  # shellcheck disable=SC2086 # one argument for each program
  CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "$flags" -o "$out/" $(printf 'k8s.io/kubernetes/cmd/%s ' $programs)
fi
echo "$stamp" >"$out/versions"
