#!/usr/bin/env bash
# Runs simulation and chaos from a new first seed, all fuzz targets, limits and benchmarks, for as
# long as requested. The figures, except those of fuzz targets, go into docs. FIRST and SEEDS repeat
# a run. SEED only replays one seed of simulation and chaos.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "control plane" hack/controlplane/build.sh
step "chaos, built" go build -o bin/chaos ./hack/chaos
if [ -n "${SEED:-}" ]; then
  step "simulation of seed $SEED" hack/simulation/run.sh
  step "chaos of seed $SEED" bin/chaos --first="$SEED" --schedules=1
  finish
  exit
fi
export FIRST=${FIRST:-$(date +%s)} SEEDS=${SEEDS:-2000}
echo "soak: the first seed is $FIRST; make soak FIRST=$FIRST SEEDS=$SEEDS repeats it"
page=$PWD/docs/simulation.md
FIGURES=$page step "simulation" hack/simulation/run.sh
FIGURES=$page NODES=5000 SEEDS=2 SEEDS_AT_LEAST=2 step "simulation of large worlds" hack/simulation/run.sh
step "chaos" bin/chaos --first="$FIRST" --schedules="$SEEDS" --docs=docs/chaos.md
step "fuzz targets" hack/fuzz.sh
step "limits" hack/limits/limits.sh
step "benchmarks, built" go build -o bin/bench ./hack/bench
step "benchmarks" bin/bench --strict --docs=docs/benchmarks.md
finish
