#!/usr/bin/env bash
# Lives through SEEDS seeds, for at most SECONDS_AT_MOST, and writes the figures into the page FIGURES, if it is set; or through SEED
# alone, and prints its story. NODES: in large worlds of so many; else in small ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -n ${SEED:-} ]]; then
  exec env SEED="$SEED" go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
fi
export SEEDS=${SEEDS:-2000} SECONDS_AT_MOST=${SECONDS_AT_MOST:-3600}
exec go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
