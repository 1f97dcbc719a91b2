#!/usr/bin/env bash
# Builds helm from its Go module into bin/helm, for the tests of config/chart. Does nothing if the
# stamp there names the same version. The first build takes about 3 minutes on two cores.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-"$here/../../bin/helm"}
cd "$here"

version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)
stamp="helm $version, $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"

if [ "$(cat "$out/versions" 2>/dev/null)" = "$stamp" ]; then
  echo "helm: $stamp (present)"
  exit 0
fi

echo "helm: building $stamp"
mkdir -p "$out"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" -o "$out/helm" helm.sh/helm/v4/cmd/helm
echo "$stamp" >"$out/versions"
