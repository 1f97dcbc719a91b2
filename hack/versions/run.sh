#!/usr/bin/env bash
# Runs what depends on the version of the API server on the newest patch of each supported minor version: VERSIONS="1.30 1.33" run.sh.
# Rights and admission policies (config), those of a drain and of the plugin's users, the rules of the CustomResourceDefinition, the
# chart, and a rolling reboot with the manifests that fit (docs/install.md). Each control plane is put into bin/versions once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. hack/step.sh

step "control plane" hack/controlplane/build.sh # etcd, kubectl and kwok are its
published=$(cd hack/controlplane && go list -m -versions k8s.io/kubernetes | tr ' ' '\n')
step "helm" hack/helm/build.sh
step "suites, built" go test -c -o bin/versions/ ./config ./api/v1alpha1 ./agent/drain ./controllers ./kubectl-reboot/command ./hack/chart
step "demo, built" go build -o bin/versions/demo ./hack/demo
here=$PWD
suite() { (cd "$1" && "$here/bin/versions/$2.test" "${@:3}"); }
for minor in ${VERSIONS:-1.30 1.31 1.32 1.33 1.34 1.35 1.36}; do
  version=$(grep -E "^v${minor//./\\.}\.[0-9]+$" <<<"$published" | sort -V | tail -1)
  [ -n "$version" ] || { echo "Kubernetes $minor is not published" >&2; exit 1; }
  step "Kubernetes $version" hack/versions/build.sh "$version" "bin/versions/$version"
  export KUBEBUILDER_ASSETS=$PWD/bin/versions/$version
  newer='' # labels of specs that need a newer version
  [ "${minor#1.}" -ge 36 ] || newer='!constrained-impersonation'
  [ "${minor#1.}" -ge 32 ] || newer+=' && !node-selectors'
  step "$version: rights and admission policies" suite config config -ginkgo.label-filter="$newer"
  step "$version: rules of the CustomResourceDefinition" suite api/v1alpha1 v1alpha1
  step "$version: a rule for what is stored already" suite controllers controllers -ginkgo.focus='A nodeSelector that nobody can evaluate'
  step "$version: rights of a drain" suite agent/drain drain -ginkgo.label-filter="$newer"
  step "$version: rights of the plugin's users" suite kubectl-reboot/command command
  step "$version: the chart" env HELM_REQUIRED=1 bash -c 'cd hack/chart && exec ../../bin/versions/chart.test -test.run=InstallUpgradeUninstall'
  step "$version: a rolling reboot" bin/versions/demo --nodes=3
done
finish
