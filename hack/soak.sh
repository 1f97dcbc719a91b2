#!/usr/bin/env bash
# Simulation and chaos from a first seed that no run has had, and then each fuzz target: as long as wished. FIRST repeats a run;
# `make simulation SEED=` and `make chaos SEED=` replay one seed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

export FIRST=${FIRST:-$(date +%s)} SEEDS=${SEEDS:-2000} SECONDS_AT_MOST=${SECONDS_AT_MOST:-3600}
echo "soak: the first seed is $FIRST; make soak FIRST=$FIRST repeats it"
step "control plane" hack/controlplane/build.sh
step "simulation" go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
step "chaos, built" go build -o bin/chaos ./hack/chaos
step "chaos" bin/chaos --first="$FIRST" --schedules="$SEEDS"
step "fuzz targets" hack/fuzz.sh
finish
