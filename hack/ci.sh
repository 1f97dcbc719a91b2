#!/usr/bin/env bash
# Everything that proves a change: `make test`, and then what takes longer. What is pure has no goroutine, so the race detector
# sees the packages that have some.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "make test" hack/test.sh
export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
step "searches, whole" go test ./api/protocol ./controllers/plan ./agent/step ./agent/engine/updateengine
step "crash tests, whole" go test -run '^TestCrash' ./agent
# shellcheck disable=SC2046 # one word for each package
step "race detector" go test -race -short . $(go list ./agent/... | grep -v /agent/step$) ./controllers ./controllers/gate ./controllers/notify ./internal/... \
  ./hack/embedded/... ./hack/fleet/... ./kubectl-reboot/command
step "simulation: as many seeds as three minutes have" env SEEDS=1000 SEEDS_AT_LEAST=150 SECONDS_AT_MOST=180 go test -count=1 -run TestSimulation -v ./hack/simulation
step "demo, built" go build -o bin/demo ./hack/demo
step "demo, end to end" bin/demo
step "demo of every other engine" bin/demo --engine=cos-update-engine,rpm-ostree,sentinel --nodes=3
step "chaos, built" go build -o bin/chaos ./hack/chaos
step "chaos" bin/chaos
release() { # twice, and the same bits
  hack/release.sh v0.0.0-alpha.1 dist/first && hack/release.sh v0.0.0-alpha.1 dist/second && diff -r dist/first dist/second
}
step "release, dry run" release
step "real nodes" hack/e2e/run.sh
finish
