#!/usr/bin/env bash
# Prints everything that `make deploy` applies, with the given images: manifest.sh CONFIG IMG
# AGENT_IMG. It refuses images that cannot have been published, and tags whose image changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ours=ghcr.io/reboot-operator # as in config/manager and config/agent, where the tag is "unreleased"

# check VARIABLE IMAGE
check() {
  local last=${2##*/} tag
  [[ $last != *@sha256:* ]] || return 0
  tag=${last#"${last%%:*}"}
  tag=${tag#:}
  case $tag in
  "" | latest) echo "$1=$2 means another image every day: give it the tag of a release, or a digest" ;;
  unreleased) echo "$1=$2 is a placeholder: give it the tag of a release, or a digest" ;;
  *)
    if [[ $2 != "$ours"/* || $tag =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]]; then return 0; fi
    echo "$1=$2 was never published: this checkout is not a release. Check one out (git tag), or build your own images, push them and name them:"
    echo "  make docker-build deploy IMG=registry.example.com/manager:$tag AGENT_IMG=registry.example.com/agent:$tag"
    ;;
  esac >&2
  return 1
}
check IMG "$2"
check AGENT_IMG "$3"

manifest=$(hack/kustomize.sh "$1")
manifest=${manifest//"$ours/manager:unreleased"/"$2"}
printf '%s\n' "${manifest//"$ours/agent:unreleased"/"$3"}"
