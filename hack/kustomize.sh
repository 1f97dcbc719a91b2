#!/usr/bin/env bash
# Prints the output of kustomize for a folder of config with the components in COMPONENTS:
# kustomize.sh CONFIG.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p dist
dir=$(mktemp -d dist/config-XXXXXX)
trap 'rm -rf "$dir"' EXIT
{
  echo "resources: [../../$1]"
  echo "components:"
  for component in ${COMPONENTS:-}; do echo "- ../../config/components/$component"; done
} >"$dir/kustomization.yaml"
go run -modfile=hack/tools/go.mod sigs.k8s.io/kustomize/kustomize/v5 build "$dir"
