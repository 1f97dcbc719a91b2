#!/usr/bin/env bash
# Runs each fuzz target for FUZZTIME and continues after a failure: fuzz.sh [EXPRESSION], such as
# agent/host or agent/host.FuzzBootID. Go keeps failing inputs in testdata/fuzz, and plain tests
# replay them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
trap 'exit 130' INT TERM

targets=$(grep -rEo --include='*_test.go' '^func Fuzz\w+' agent api controllers hack internal kubectl-reboot |
  sed -E 's|/[^/]*:func |.|' | grep -E -e "${1:-}" | sort) || { echo "no fuzz test matches \"${1:-}\"" >&2; exit 1; }
failed=
for target in $targets; do
  echo "$target, ${FUZZTIME:=30s}"
  # By default, Go spends up to a minute on minimizing each large input, and runs nothing else
  # during that time.
  go test "./${target%.*}" -run='^$' -fuzz="^${target##*.}\$" -fuzztime="$FUZZTIME" -fuzzminimizetime=1s || failed="$failed $target"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
