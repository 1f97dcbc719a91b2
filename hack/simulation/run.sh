#!/usr/bin/env bash
# Lives through SEEDS seeds, for at most SECONDS_AT_MOST, and writes the figures into docs/simulation.md; or through SEED alone,
# and prints its story. NODES: in large worlds of so many; else in small ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ -n ${SEED:-} ]]; then
  exec env SEED="$SEED" go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
fi
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
export SEEDS=${SEEDS:-2000} SECONDS_AT_MOST=${SECONDS_AT_MOST:-3600} FIGURES=$figures
go test -count=1 -timeout=0 -run 'TestSimulation$' -v ./hack/simulation
size=${NODES:+large}
awk -v figures="$figures" -v begin="<!-- figures of ${size:-small} worlds" '
  index($0, begin) == 1 { print; print ""; while ((getline line < figures) > 0) print line; print ""; skip = 1; next }
  /^<!-- end of figures/ { skip = 0 }
  !skip { print }' docs/simulation.md >"$figures.md"
mv "$figures.md" docs/simulation.md
