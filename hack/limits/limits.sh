#!/usr/bin/env bash
# Measures what the two programs leave behind and how fast they end, and writes the figures to
# docs/limits.md. It runs the same tests as CI, with REBOOTS cycles and floods of FLOOD. Takes about
# half an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${REBOOTS:=1000}" "${FLOOD:=10000}"
export REBOOTS FLOOD FIGURES=$PWD/docs/limits.md
sed -i -E '/^<!-- .*: written by make limits/,/: end -->$/{/^\| (agent|manager)[ ,]/d}' "$FIGURES" # the tests add new rows

run() { go test -count=1 -timeout 2h "$@"; }
run ./hack/limits/...
run ./controllers -ginkgo.timeout=2h -ginkgo.focus='A flood|again and again|in turn'
run ./agent -run 'TestAgent$' -ginkgo.timeout=2h -ginkgo.focus='A flood|reboot after reboot'
run -v ./agent/engine/updateengine -run Flood
echo "wrote $FIGURES"
