#!/usr/bin/env bash
# What people run before they push, in the order in which it fails fastest: lint, generated code, and all packages with the
# searches and crash tests capped. `make ci` runs this first, and then what takes longer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "prerequisites" hack/prerequisites.sh
step "verify: generated code, manifests, go.mod" hack/verify.sh
step "lint" go run -modfile=hack/tools/go.mod sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter run
step "lint: workflows" go run -modfile=hack/tools/go.mod github.com/rhysd/actionlint/cmd/actionlint .github/workflows/*.yaml
step "control plane" hack/controlplane/build.sh
step "browser" hack/browser/build.sh
# `make ci` builds Prometheus and helm, which takes minutes. Here their tests run where they are built, and are named at the end where
# they are not.
if [ -n "${WHOLE:-}" ]; then
  step "prometheus and promtool" hack/prometheus/build.sh
  step "helm" hack/helm/build.sh
  export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
fi
# Suites wait more than they compute: three more packages at once than there are cores. The longest begin first, so that none of them
# runs alone in the end.
longest=(./hack/fleet ./agent ./controllers ./config ./hack/limits ./kubectl-reboot/command ./config/prometheus)
# Lint has vetted all packages. Without symbols, which stack traces do not need, a test links in half the time. Results are not cached: go
# does not see what scripts read, and from what the programs are built that suites start.
tests() { go test -count=1 -vet=off -ldflags='-s -w' -short -p "$@"; }
raced() { CGO_ENABLED=1 tests "$1" -race "${@:2}"; }
# With WHOLE=1, which `make ci` sets, what has goroutines runs with the race detector, and computes more: one more package than cores.
# Beside it the others run one by one. Packages whose searches are capped here are left out: `make ci` runs them whole.
if [ -n "${WHOLE:-}" ]; then
  concurrent=$(go list ./hack/fleet ./agent ./controllers ./kubectl-reboot/command . ./agent/... ./controllers/gate ./controllers/notify ./internal/... ./hack/embedded/... \
    ./hack/fleet/... ./hack/wire ./hack/chaos/faults ./hack/simulation/... ./kubectl-reboot/dashboard ./kubectl-reboot/terminal | grep -v /agent/step$)
  whole=$(go list ./api/protocol ./controllers/plan ./agent/step ./hack/limits ./hack/bench/scale)
  others=$(go list "${longest[@]}" ./... | grep -vxF -e "$concurrent" -e "$whole")
  step "tests, of what has goroutines with the race detector" beside "raced $(($(nproc) + 1)) $concurrent" "tests 1 $others"
else
  step "tests" tests $(($(nproc) + 3)) "${longest[@]}" ./...
fi
finish
