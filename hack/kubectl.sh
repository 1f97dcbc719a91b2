# shellcheck shell=bash
# Common functions of the scripts that use a cluster. KUBECTL is the program, which the Makefile
# chooses.

KUBECTL=${KUBECTL:-kubectl}
command -v "$KUBECTL" >/dev/null || {
  echo "kubectl is missing: install it, or build it with make controlplane" >&2
  exit 1
}

# server_version prints the API server's version, such as 1.36.
server_version() {
  local answer
  answer=$("$KUBECTL" get --raw /version) || {
    echo "the API server does not answer: KUBECONFIG (${KUBECONFIG:-$HOME/.kube/config}) has to name a cluster that runs" >&2
    return 1
  }
  # Some providers write "35+".
  sed -nE 's/.*"(major|minor)": *"([0-9]+).*/\2/p' <<<"${answer//,/$'\n'}" | paste -sd.
}

# config_for VERSION prints the folder of the manifests for a version.
config_for() {
  local minor=${1#*.}
  if [ "${1%%.*}" != 1 ] || [ "$minor" -ge 36 ]; then
    echo config/default
  elif [ "$minor" -ge 31 ]; then
    echo config/overlays/rbac-fallback
  else
    echo "Kubernetes $1 is too old: the operator needs 1.31, the oldest version it is tested with" >&2
    return 1
  fi
}
