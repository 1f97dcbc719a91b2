#!/usr/bin/env bash
# Builds prometheus and promtool from Go modules into bin/prometheus, for the tests of
# config/prometheus and of gates. Does nothing if the stamp there names the same version. The first
# build takes about 3 minutes on two cores.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-"$here/../../bin/prometheus"}
cd "$here"

stamp="prometheus $(go list -m -f '{{.Version}}' github.com/prometheus/prometheus), $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"

if [ "$(cat "$out/versions" 2>/dev/null)" = "$stamp" ]; then
  echo "prometheus: $stamp (present)"
  exit 0
fi

echo "prometheus: building $stamp"
mkdir -p "$out"
# Leave out the discovery of clouds, because tests name their targets, and the web pages, because
# the module does not contain them.
CGO_ENABLED=0 go build -trimpath -tags remove_all_sd -ldflags '-s -w' -o "$out/" github.com/prometheus/prometheus/cmd/{prometheus,promtool}
echo "$stamp" >"$out/versions"
