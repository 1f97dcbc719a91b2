#!/usr/bin/env bash
# Fails if generated files do not match their sources: DeepCopy methods, the
# CustomResourceDefinition, go.mod and go.sum.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
fail() {
  echo "$1" >&2
  failed=1
}

# Generate elsewhere and compare, so that uncommitted changes can be verified too.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
go run -modfile=hack/tools/go.mod sigs.k8s.io/controller-tools/cmd/controller-gen crd output:crd:artifacts:config="$fresh/crd" \
  object:headerFile=hack/boilerplate.go.txt output:object:dir="$fresh" paths=./api/...
diff -ru config/crd/bases "$fresh/crd" || fail "config/crd/bases is out of date: make manifests"
diff -u api/v1alpha1/zz_generated.deepcopy.go "$fresh/zz_generated.deepcopy.go" ||
  fail "api/v1alpha1/zz_generated.deepcopy.go is out of date: make generate"

# Only `make ci` verifies the modules of tools and programs. Their go.mod files are only changed by
# hand, and the check would download everything that their tests need.
for module in . ${WHOLE:+hack/tools hack/controlplane hack/cosign hack/scanners hack/prometheus hack/helm hack/neighbours}; do
  (cd "$module" && go mod tidy -diff) || fail "$module/go.mod is out of date: go mod tidy there"
done

exit $failed
