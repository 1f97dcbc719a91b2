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
step "control plane" hack/controlplane/build.sh
step "prometheus and promtool" hack/prometheus/build.sh
step "helm" hack/helm/build.sh
export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
# Suites wait more than they compute: one more package than there are cores.
step "tests" go test -short -p $(($(nproc) + 1)) ./...
finish
