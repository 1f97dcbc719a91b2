#!/usr/bin/env bash
# Measures what the two programs leave behind, and how soon they end, and puts the figures into docs/limits.md: the tests that
# CI runs, with REBOOTS cycles and floods of FLOOD. About half an hour on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${REBOOTS:=1000}" "${FLOOD:=10000}"
FIGURES=$(mktemp)
trap 'rm -f "$FIGURES"' EXIT
export REBOOTS FLOOD FIGURES

run() { go test -count=1 -timeout 2h "$@"; }
run ./hack/limits/...
run ./controllers -ginkgo.timeout=2h -ginkgo.focus='A flood|again and again|in turn'
run ./agent -run 'TestAgent$' -ginkgo.timeout=2h -ginkgo.focus='A flood|reboot after reboot'
run -v ./agent/engine/updateengine -run Flood

# Each table stands between two marks; its first two lines, the head, stay.
page=docs/limits.md
for name in cycles floods events stops; do
  sed -n "s/^$name //p" "$FIGURES" | sort -t'|' -s -k2,2 -k3,3n >"$FIGURES.$name"
  awk -v name="$name" -v rows="$FIGURES.$name" '
    $0 == "<!-- /" name " -->" { skipping = 0 }
    !skipping { print }
    $0 == "<!-- " name " -->" {
      for (i = 0; i < 3; i++) { getline; print }
      while ((getline row < rows) > 0) print row
      print ""
      skipping = 1
    }' "$page" >"$page.new"
  mv "$page.new" "$page"
  rm "$FIGURES.$name"
done
echo "wrote $page"
