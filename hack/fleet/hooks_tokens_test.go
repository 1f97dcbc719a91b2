package fleet

import (
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

type object = map[string]any

// tokens tests what the token of a node's before-hook allows, with dry runs.
func (h *hooked) tokens(own, other string) {
	pod := h.pods(hookNamespace, "")[0]
	token, err := h.fleet.Cluster.Token(h.Context(), pod.Namespace, pod.Spec.ServiceAccountName, &pod)
	h.must(err)
	unbound, err := h.fleet.Cluster.Token(h.Context(), pod.Namespace, pod.Spec.ServiceAccountName, nil)
	h.must(err)
	annotations := func(key string, value any) object { return object{"annotations": object{key: value}} }
	const elsewhere, another, nothing = `the hook on node "node-1" may not write node node-2`, "the hook may change no annotation but " + before,
		"the hook may change nothing but its answer"
	for name, tc := range map[string]struct {
		token, node, status string
		patch               object
		why                 string
	}{
		"its answer":                 {token: token, node: own, patch: object{"metadata": annotations(before, "true")}},
		"its answer, taken back":     {token: token, node: own, patch: object{"metadata": annotations(before, nil)}},
		"an answer on another node":  {token: token, node: other, patch: object{"metadata": annotations(before, "true")}, why: elsewhere},
		"without a pod's token":      {token: unbound, node: own, patch: object{"metadata": annotations(before, "true")}, why: `the hook on node "" may not write node node-1`},
		"another hook's answer":      {token: token, node: own, patch: object{"metadata": annotations(consent, "true")}, why: another},
		"another annotation's value": {token: token, node: own, patch: object{"metadata": annotations("kwok.x-k8s.io/node", "mine")}, why: another},
		"an annotation's end":        {token: token, node: own, patch: object{"metadata": annotations("kwok.x-k8s.io/node", nil)}, why: another},
		// Two admission policies refuse this one, in any order.
		"a grant":     {token: token, node: own, patch: object{"metadata": annotations("reboot-operator.io/grant", "{}")}, why: "ValidatingAdmissionPolicy"},
		"a label":     {token: token, node: own, patch: object{"metadata": object{"labels": object{"kubernetes.io/hostname": nil}}}, why: nothing},
		"a finalizer": {token: token, node: own, patch: object{"metadata": object{"finalizers": []string{"example.com/mine"}}}, why: nothing},
		"a cordon":    {token: token, node: own, patch: object{"spec": object{"unschedulable": true}}, why: nothing},
		"a taint":     {token: token, node: own, patch: object{"spec": object{"taints": []object{{"key": "a", "effect": "NoSchedule"}}}}, why: nothing},
		"a status":    {token: token, node: own, status: "status", patch: object{"status": object{"phase": "Pending"}}, why: "cannot patch resource \"nodes/status\""},
	} {
		err := h.try(tc.token, tc.node, tc.status, tc.patch)
		switch {
		case tc.why == "" && err != nil:
			h.Errorf("%s: %v", name, err)
		case tc.why != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.why)):
			h.Errorf("%s: %v, want forbidden, %q", name, err, tc.why)
		}
	}
}

// try patches a node as the token's owner, with a dry run.
func (h *hooked) try(token, node, subresource string, patch object) error {
	config := rest.AnonymousClientConfig(h.fleet.Cluster.Config())
	config.BearerToken = token
	api, err := kubernetes.NewForConfig(config)
	h.must(err)
	body, err := json.Marshal(patch)
	h.must(err)
	var subresources []string
	if subresource != "" {
		subresources = []string{subresource}
	}
	_, err = api.CoreV1().Nodes().Patch(h.Context(), node, types.MergePatchType, body, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
	return err
}
