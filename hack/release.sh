#!/usr/bin/env bash
# Builds everything that a release publishes: release.sh VERSION FOLDER. It only needs network
# access for Go modules. The output of a commit is always identical. With TWICE=1 it builds again,
# and compares what the tests of hack/release do not compare.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$1 out=$2
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]] || {
  echo "$version is not a release: check out a tag such as v0.1.0 or v0.1.0-rc.1, without changes; make release VERSION=v0.0.0-alpha.1 tries it" >&2
  exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"

# programs FOLDER PLATFORM...
programs() {
  local folder=$1 platform target
  for platform in "${@:2}"; do
    target=build-plugin
    [[ $platform != linux/* ]] || target=build
    echo "building $platform"
    GOOS=${platform%/*} GOARCH=${platform#*/} make --no-print-directory $target VERSION="$version" BIN="$folder/${platform/\//_}"
  done
}
# bills FOLDER-OF-PROGRAMS OUT ARCH...
bills() {
  local arch bill
  for arch in "${@:3}"; do
    BIN=$1/linux_$arch DIST=$work/sbom VERSION=$version hack/sbom.sh
    for bill in "$work"/sbom/*; do mv "$bill" "$2/$(basename "$bill" .cdx.json)_linux_$arch.cdx.json"; done
  done
}
# manifests OUT
manifests() {
  local ours=ghcr.io/reboot-operator
  hack/manifest.sh config/default "$ours/manager:$version" "$ours/agent:$version" >"$1/install.yaml"
  hack/manifest.sh config/overlays/rbac-fallback "$ours/manager:$version" "$ours/agent:$version" >"$1/install-rbac-fallback.yaml"
}

programs "$work" linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
bills "$work" "$out" amd64 arm64
echo "packing images, plugin and chart"
go run ./hack/release --version="$version" --programs="$work" --out="$out"
manifests "$out"

if [ -n "${TWICE:-}" ]; then # one platform for each format of programs
  echo "once more, to the same bits"
  again=$work/again
  mkdir -p "$again/out"
  programs "$again/programs" linux/amd64 darwin/arm64 windows/amd64
  bills "$again/programs" "$again/out" amd64
  manifests "$again/out"
  for made in "$again"/programs/*/* "$again"/out/*; do
    first=$out/${made##*/}
    [[ $made != */programs/* ]] || first=$work/${made#"$again/programs/"}
    cmp "$first" "$made"
  done
fi

last=$(git describe --tags --abbrev=0 --match='v*' HEAD^ 2>/dev/null || true)
{
  echo "# reboot-operator $version"
  echo
  echo "What it means for an upgrade: CHANGELOG.md. All changes${last:+ since $last}:"
  echo
  git log --no-merges --format='- %s' ${last:+"$last.."}HEAD
} >"$out/NOTES.md"

(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && cat SHA256SUMS)
