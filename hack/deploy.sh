#!/usr/bin/env bash
# Deploys the operator to the cluster of KUBECONFIG: deploy.sh IMG AGENT_IMG [CONFIG]. Without
# CONFIG it chooses the manifests that fit the version of the API server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/kubectl.sh

version=$(server_version)
config=${3:-$(config_for "$version")}
echo "Kubernetes $version: deploying $config"

manifest=$(hack/manifest.sh "$config" "$1" "$2")
"$KUBECTL" apply --server-side -f - <<<"$manifest"

cat <<EOF

Next:
  kubectl get pods -n reboot-operator-system        # two managers, and an agent on every Linux node
  kubectl apply -f config/samples/dry-run.yaml      # a first policy: decides and reports everything, reboots nothing
  kubectl get rebootpolicies -o wide                # what it waits for; make build adds kubectl reboot status
EOF
