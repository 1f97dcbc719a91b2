#!/usr/bin/env bash
# Measures what the two programs leave behind, and how soon they end, and puts the figures into docs/limits.md: the tests that
# CI runs, with REBOOTS cycles and floods of FLOOD. About half an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${REBOOTS:=1000}" "${FLOOD:=10000}"
export REBOOTS FLOOD FIGURES=$PWD/docs/limits.md
sed -i -E '/^<!-- .*: written by make limits/,/: end -->$/{/^\| (agent|manager)[ ,]/d}' "$FIGURES" # the tests add the rows anew

run() { go test -count=1 -timeout 2h "$@"; }
run ./hack/limits/...
run ./controllers -ginkgo.timeout=2h -ginkgo.focus='A flood|again and again|in turn'
run ./agent -run 'TestAgent$' -ginkgo.timeout=2h -ginkgo.focus='A flood|reboot after reboot'
run -v ./agent/engine/updateengine -run Flood
echo "wrote $FIGURES"
