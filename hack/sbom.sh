#!/usr/bin/env bash
# Writes what each program in bin is made of, as the program itself reports (go version -m), into dist: CycloneDX, JSON.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# BIN has the programs, DIST gets the bills.
bin=${BIN:-bin} dist=${DIST:-dist}
mkdir -p "$dist"
for program in manager agent kubectl-reboot; do
  bom=$dist/$program.cdx.json
  go tool -modfile=hack/scanners/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp -version "${VERSION:-dev}" -output "$bom" "$bin/$program" 2>/dev/null
  [ "$(go version -m "$bin/$program" | grep -c '^	dep')" -gt 0 ] || { echo "$bin/$program does not say what it is made of" >&2; exit 1; }
  printf '%-32s %s modules\n' "$bom" "$(grep -c '"bom-ref"' "$bom")"
done
