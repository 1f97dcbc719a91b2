#!/usr/bin/env bash
# Runs SEEDS simulated worlds for at most SECONDS_AT_MOST, and fails after fewer than
# SEEDS_AT_LEAST. The figures go into the page FIGURES, if set. With SEED it runs only that world
# and prints its story. With NODES the worlds are large, with that many nodes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -n ${SEED:-} ]]; then
  exec env SEED="$SEED" go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
fi
export SEEDS=${SEEDS:-2000} SECONDS_AT_MOST=${SECONDS_AT_MOST:-3600}
export SEEDS_AT_LEAST=${SEEDS_AT_LEAST:-$((SEEDS < 100 ? SEEDS : 100))}
exec go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
