#!/usr/bin/env bash
# Runs all checks behind docs/security.md, and prints a table of the results. A step that exits with
# status 3 could not run here. It is listed as such, and does not count as a success.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

results=()
status=0
step() {
  local name=$1 started=$SECONDS code=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || code=$?
  case $code in
  0) results+=("shown      $name ($((SECONDS - started)) s)") ;;
  3) results+=("NOT SHOWN  $name: see above") status=1 ;;
  *) results+=("FAILED     $name") status=1 ;;
  esac
}

attempts() {
  hack/controlplane/build.sh && go test -count=1 ./config ./docs ./hack ./hack/release && sed -n '/^| token /,/^$/p' docs/security-attempts.md
}

step "attempts with stolen tokens, on the API server (docs/security-attempts.md)" attempts
step "known vulnerabilities" hack/vulncheck.sh
step "programs" make --no-print-directory build
step "bills of materials" hack/sbom.sh
step "the same bits from two builds" hack/reproducible.sh
# shellcheck disable=SC2046 # one argument for each archive
step "images of one program each: release archives, docker save IMG -o dist/NAME.tar" hack/scan.sh $(ls dist/*.tar dist/*/*.oci.tar 2>/dev/null)

printf '\n== security\n'
printf '%s\n' "${results[@]}"
exit $status
