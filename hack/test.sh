#!/usr/bin/env bash
# Everything that proves a change, in the order in which it fails fastest. Cold it takes about 40 minutes on two cores,
# most of it compiling; `make test` runs it, and so does CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - started))
}

step "prerequisites" hack/prerequisites.sh
step "verify: generated code, manifests, go.mod" hack/verify.sh
step "lint" go tool -modfile=hack/tools/go.mod golangci-lint run
step "control plane" hack/controlplane/build.sh
step "prometheus and promtool" hack/prometheus/build.sh
export PROMETHEUS_REQUIRED=1
step "tests, with the race detector" go test -race ./...
step "searches and properties, whole: with the race detector they are a part" go test ./controllers/plan ./agent/reboot
step "simulation, without the race detector: as many seeds as three minutes have" env SEEDS=1000 SECONDS_AT_MOST=180 go test -count=1 -run TestSimulation -v ./hack/simulation
step "demo, built" go build -o bin/demo ./hack/demo
step "demo, end to end" bin/demo
step "demo of every other engine" bin/demo --engine=cos-update-engine,rpm-ostree,sentinel --nodes=3
step "chaos, built" go build -o bin/chaos ./hack/chaos
step "chaos" bin/chaos
step "real nodes" hack/e2e/run.sh
printf '\nAll passed after %d s.\n' "$SECONDS"
