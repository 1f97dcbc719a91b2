#!/usr/bin/env bash
# Prints the newest patch release of each minor version of Kubernetes in VERSIONS, such as "1.31
# 1.34". Without VERSIONS it starts at the oldest version that the chart allows and ends at the
# newest published one. It reports any published version that is newer than the control plane of all
# other tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

minor() { cut -d. -f2 <<<"$1"; }
published=$(go -C hack/controlplane list -m -versions k8s.io/kubernetes | tr ' ' '\n' | grep '^v' | sort -V)
released=$(grep -E '^v1\.[0-9]+\.[0-9]+$' <<<"$published")
oldest=$(sed -n 's/^kubeVersion: ">=1\.\([0-9]*\)\.0-0"$/\1/p' config/chart/Chart.yaml)
for wanted in ${VERSIONS:-$(seq -f 1.%g "$oldest" "$(minor "$(tail -n 1 <<<"$released")")")}; do
  grep -F "v$wanted." <<<"$released" | tail -n 1 | grep . || { echo "Kubernetes $wanted is not published" >&2; exit 1; }
done

last=$(tail -n 1 <<<"$published")
ours=$(go -C hack/controlplane list -m -f '{{.Version}}' k8s.io/kubernetes)
if [ "$(minor "$last")" -gt "$(minor "$ours")" ]; then
  newer="Kubernetes $last is published, and hack/controlplane/go.mod has $ours"
  echo "$newer" >&2
  [ -z "${NOT_SHOWN:-}" ] || echo "$newer" >>"$NOT_SHOWN"
fi
