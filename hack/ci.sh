#!/usr/bin/env bash
# Runs everything that proves a change: `make test`, and then what takes longer. The tests of each
# package run once: packages with goroutines with the race detector, and searches in full. Only
# crash tests run twice: shortened with the race detector, and in full.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "make test" env WHOLE=1 SEEDS=1 hack/test.sh
export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
step "a flood of ten thousand broadcasts" go test -count=1 -vet=off -run Flood ./agent/engine/updateengine
# Crash tests mostly wait, and searches mostly compute.
step "searches, crash tests, SIGTERM and part scale of the bench, whole" parallel \
  "go test -count=1 -vet=off -timeout=20m ./api/protocol ./controllers/plan ./agent/step ./hack/limits ./hack/bench/scale" \
  "go test -count=1 -vet=off -run ^TestCrashAtEveryWrite\$ ./agent" "go test -count=1 -vet=off -run ^TestCrashAtEveryWrite_(Rollback|FleetLock_Behaviour65)\$ ./agent"
step "demo, built" go build -o bin/demo ./hack/demo
step "demo of every engine" bin/demo --engine=update-engine,cos-update-engine,rpm-ostree,sentinel --nodes=4
step "chaos, built" go build -o bin/chaos ./hack/chaos
step "chaos: two schedules for each kind of fault" bin/chaos --schedules=66
step "simulation: 60 seeds" env SEEDS=60 SEEDS_AT_LEAST=55 SECONDS_AT_MOST=300 \
  go test -count=1 -run ^TestSimulation -v ./hack/simulation
step "release, dry run" env TWICE=1 hack/release.sh v0.0.0-alpha.1 dist/dry-run
# Runs alone, because machines that boot next to a busy computation miss their timeouts.
step "real nodes, with what the release is made of" env RELEASE="$PWD/dist/dry-run" hack/e2e/run.sh
finish
