#!/usr/bin/env bash
# Writes a bill of materials in CycloneDX JSON to dist for each program in bin, from what the
# program itself reports (go version -m).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# BIN is the folder of the programs, and DIST that of the output.
bin=${BIN:-bin} dist=${DIST:-dist}
mkdir -p "$dist"
for program in manager agent kubectl-reboot; do
  bom=$dist/$program.cdx.json
  go tool -modfile=hack/scanners/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp -version "${VERSION:-dev}" -output "$bom" "$bin/$program" 2>/dev/null
  [ "$(go version -m "$bin/$program" | grep -c '^	dep')" -gt 0 ] || { echo "$bin/$program does not say what it is made of" >&2; exit 1; }
  printf '%-32s %s modules\n' "$bom" "$(grep -c '"bom-ref"' "$bom")"
done
