#!/usr/bin/env bash
# Tests everything that depends on the version of the API server, on the newest patch release of
# each supported minor version: VERSIONS="1.31 1.34" run.sh. These are permissions and admission
# policies (config), permissions of a drain and of the plugin's users, the rules of the
# CustomResourceDefinition, the chart, and a rolling reboot with the manifests that fit
# (docs/install.md). Each control plane is put into bin/versions once. The newest also runs Karpenter
# and the descheduler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. hack/step.sh

versions=$(hack/versions/list.sh)
step "control plane" hack/controlplane/build.sh # provides etcd, kubectl and kwok
step "helm" hack/helm/build.sh
step "suites, built" go test -c -o bin/versions/ ./config ./api/v1alpha1 ./agent/drain ./controllers ./kubectl-reboot/command ./hack/chart ./hack/fleet
step "neighbours" hack/neighbours/build.sh
step "demo, built" go build -o bin/versions/demo ./hack/demo
here=$PWD
suite() { (cd "$1" && "$here/bin/versions/$2.test" "${@:3}"); }
ours=$(go -C hack/controlplane list -m -f '{{.Version}}' k8s.io/kubernetes)
for version in $versions; do
  minor=$(cut -d. -f2 <<<"$version")
  export KUBEBUILDER_ASSETS=$PWD/bin/k8s
  if [ "$version" != "$ours" ]; then
    KUBEBUILDER_ASSETS=$PWD/bin/versions/$version
    step "Kubernetes $version" hack/versions/build.sh "$version" "$KUBEBUILDER_ASSETS"
  fi
  newer='' # labels of specs that need a newer version
  [ "$minor" -ge 36 ] || newer='!constrained-impersonation && !mutating-policies'
  [ "$minor" -ge 32 ] || newer+=' && !node-selectors'
  step "$version: rights and admission policies" suite config config -ginkgo.label-filter="$newer"
  step "$version: rules of the CustomResourceDefinition" suite api/v1alpha1 v1alpha1
  step "$version: a rule for what is stored already" suite controllers controllers -ginkgo.focus='A nodeSelector that nobody can evaluate'
  step "$version: rights of a drain" suite agent/drain drain -ginkgo.label-filter="$newer"
  step "$version: rights of the plugin's users" suite kubectl-reboot/command command
  step "$version: the chart" env HELM_REQUIRED=1 bash -c 'cd hack/chart && exec ../../bin/versions/chart.test -test.run=InstallUpgradeUninstall'
  step "$version: a rolling reboot" bin/versions/demo --nodes=3
done
export KUBEBUILDER_ASSETS=$PWD/bin/k8s NEIGHBOURS_REQUIRED=1
step "$ours: Karpenter and the descheduler" suite hack/fleet fleet -test.run='^Test(Karpenter|Descheduler)$'
finish
