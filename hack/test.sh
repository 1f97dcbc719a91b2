#!/usr/bin/env bash
# What people run before they push, in the order in which it fails fastest: lint, generated code, and all packages with the
# searches and crash tests capped. `make ci` runs this first, and then what takes longer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "prerequisites" hack/prerequisites.sh
step "verify: generated code, manifests, go.mod" hack/verify.sh
step "lint" go tool -modfile=hack/tools/go.mod golangci-lint run
step "lint: API conventions" go tool -modfile=hack/tools/go.mod golangci-lint-kube-api-linter run --config .golangci-api.yml ./api/...
step "lint: workflows" go tool -modfile=hack/tools/go.mod actionlint .github/workflows/*.yaml
step "control plane" hack/controlplane/build.sh
step "prometheus and promtool" hack/prometheus/build.sh
step "helm" hack/helm/build.sh
step "browser" hack/browser/build.sh
export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
# Suites wait more than they compute: one more package than there are cores.
tests() { go test -short -p $(($(nproc) + 1)) "$@"; }
# With RACE=1, which `make ci` sets, what has goroutines runs with the race detector. What is pure has none.
if [ -n "${RACE:-}" ]; then
  concurrent=$(go list . ./agent/... ./controllers ./controllers/gate ./controllers/notify ./internal/... ./hack/embedded/... ./hack/fleet/... ./kubectl-reboot/command | grep -v /agent/step$)
  # shellcheck disable=SC2046,SC2086 # one word for each package
  step "tests, with the race detector" tests -race $concurrent
  # shellcheck disable=SC2046
  step "tests of what has no goroutines" tests $(go list ./... | grep -vxF "$concurrent")
else
  step "tests" tests ./...
fi
finish
