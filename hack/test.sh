#!/usr/bin/env bash
# Runs what people run before they push, fastest checks first: lint, generated code, and all
# packages with shortened searches and crash tests. `make ci` runs this first, and then what takes
# longer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/step.sh

step "prerequisites" hack/prerequisites.sh
step "verify: generated code, manifests, go.mod" hack/verify.sh
step "lint" go run -modfile=hack/tools/go.mod sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter run
step "lint: workflows" go run -modfile=hack/tools/go.mod github.com/rhysd/actionlint/cmd/actionlint .github/workflows/*.yaml
step "control plane" hack/controlplane/build.sh
step "browser" hack/browser/build.sh
# `make ci` builds Prometheus and helm, which takes minutes. Here their tests only run if they are
# built, and are otherwise listed at the end.
if [ -n "${WHOLE:-}" ]; then
  step "prometheus and promtool" hack/prometheus/build.sh
  step "helm" hack/helm/build.sh
  export PROMETHEUS_REQUIRED=1 HELM_REQUIRED=1
fi
# Suites wait more than they compute, so run three more packages in parallel than there are cores.
# The longest ones start first, so that none runs alone at the end.
longest=(./hack/fleet ./agent ./controllers ./config ./hack/limits ./kubectl-reboot/command ./config/prometheus)
# Lint has vetted all packages already. Without symbols, which stack traces do not need, tests link
# in half the time. Results are not cached, because go does not know the scripts and the sources of
# programs that suites use.
tests() { go test -count=1 -vet=off -ldflags='-s -w' -short -p "$@"; }
raced() { CGO_ENABLED=1 tests "$1" -race "${@:2}"; }
# With WHOLE=1, as in `make ci`, packages with goroutines run with the race detector, which computes
# more: one more package than cores. The others run one by one at the same time. Packages with
# shortened searches are left out, because `make ci` runs them in full.
if [ -n "${WHOLE:-}" ]; then
  concurrent=$(go list ./hack/fleet ./agent ./controllers ./kubectl-reboot/command . ./agent/... ./controllers/gate ./controllers/notify ./internal/... ./hack/embedded/... \
    ./hack/fleet/... ./hack/wire ./hack/chaos/faults ./hack/simulation/... ./kubectl-reboot/dashboard ./kubectl-reboot/terminal | grep -v /agent/step$)
  whole=$(go list ./api/protocol ./controllers/plan ./agent/step ./hack/limits ./hack/bench/scale)
  others=$(go list "${longest[@]}" ./... | grep -vxF -e "$concurrent" -e "$whole")
  step "tests, of what has goroutines with the race detector" parallel "raced $(($(nproc) + 1)) $concurrent" "tests 1 $others"
else
  step "tests" tests $(($(nproc) + 3)) "${longest[@]}" ./...
fi
finish
