#!/usr/bin/env bash
# Runs the suite on real nodes, or reports why it cannot: make e2e. Arguments are the suite's, such as -ginkgo.focus=inhibitor.
# RELEASE, the absolute path of a folder of hack/release.sh, installs what is in it by helm, and not this checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

why=$(./prepare.sh --why-not)
if [ -n "$why" ]; then
  echo "e2e: SKIPPED: $why"
  [ -z "${NOT_SHOWN:-}" ] || echo "real nodes: $why" >>"$NOT_SHOWN"
  exit 0
fi
./prepare.sh
go test -c -o ../../bin/e2e/suite .
# On cgroup v2 the machines' groups are made below that of the suite, which systemd must have left to it.
own=()
if [ -e /sys/fs/cgroup/cgroup.controllers ] && [ -d /run/systemd/system ]; then
  own=(systemd-run --scope --quiet --collect --property=Delegate=yes --)
fi
# A program of its own and in this one's place, so that it takes everything down when it is asked to end.
E2E=1 exec "${own[@]}" ../../bin/e2e/suite -ginkgo.timeout=10m "$@"
