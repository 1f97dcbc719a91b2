#!/usr/bin/env bash
# Runs the suite on real nodes, or says why it cannot: make e2e. Arguments are passed to the suite,
# such as -ginkgo.focus=inhibitor. With RELEASE, the absolute path of a folder made by
# hack/release.sh, it installs that release by Helm instead of this checkout.
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
# With cgroup v2 the machines' cgroups are created below the suite's own, which systemd must have
# delegated.
own=()
if [ -e /sys/fs/cgroup/cgroup.controllers ] && [ -d /run/systemd/system ]; then
  own=(systemd-run --scope --quiet --collect --property=Delegate=yes --)
fi
# Replace this shell by the program, so that an interrupt reaches the program and it cleans up.
E2E=1 exec "${own[@]}" ../../bin/e2e/suite -ginkgo.timeout=10m "$@"
