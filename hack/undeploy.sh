#!/usr/bin/env bash
# Removes what deploy.sh applied, for any version of the cluster: undeploy.sh [CONFIG]. It first
# deletes the policies, because the manager has to end the reboots that they have granted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/kubectl.sh

config=${1:-config/overlays/rbac-fallback} # includes everything in config/default
kind=rebootpolicies.reboot-operator.io

# policies prints the remaining policies, with the nodes they wait for.
policies() {
  "$KUBECTL" get $kind -o jsonpath='{range .items[*]}{.metadata.name}{": "}{.status.grants[*].node}{"\n"}{end}'
}

crd=$("$KUBECTL" get crd --ignore-not-found -o name $kind)
if [ -n "$crd" ]; then
  "$KUBECTL" delete $kind --all --wait=false
  shown=
  for ((second = 0; ; second++)); do
    left=$(policies)
    [ -n "$left" ] || break
    if [ "$left" != "$shown" ]; then
      shown=$left
      echo "waiting for the manager to end the granted reboots of these policies (policy: nodes):"
      while read -r line; do echo "  $line"; done <<<"$left"
    fi
    if [ $second = 60 ]; then
      echo "If no manager runs any more, let the policies go yourself; their nodes keep what the agents wrote on them:"
      while read -r line; do echo "  kubectl patch rebootpolicy ${line%%:*} --type merge -p '{\"metadata\":{\"finalizers\":null}}'"; done <<<"$left"
    fi
    sleep 1
  done
fi
echo "removing $config"
hack/kustomize.sh "$config" | "$KUBECTL" delete --ignore-not-found --wait=false -f -
"$KUBECTL" wait --for=delete --timeout=1m crd/$kind # a deployment before that would fail
echo "The namespace goes with its last pod. kubectl reboot cleanup removes what stays on Nodes."
