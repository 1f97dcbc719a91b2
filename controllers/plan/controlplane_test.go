package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// TestReboots_ControlPlane checks that at most one control-plane node is granted, only while the
// others are Ready, and only if one policy governs all of them (behaviour 28).
func TestReboots_ControlPlane(t *testing.T) {
	cp, old := label(record.ControlPlaneLabels[0], ""), label(record.ControlPlaneLabels[1], "true")
	nine := atMost("9")
	cases := map[string]struct {
		situation situation
		granted   []string
		reason    v1alpha1.Reason
		// message is that of the first control-plane node that waits.
		message string
	}{
		"one at a time, on either label": {
			one(policy("all", nine), needy("cp-1", cp), needy("cp-2", old), needy("worker")),
			[]string{"worker", "cp-1"},
			v1alpha1.ReasonControlPlaneGuard, "control-plane node cp-1 is being rebooted",
		},
		"one at a time in a dry run too": {
			one(policy("all", nine, dryRun), needy("cp-1", cp), needy("cp-2", cp)),
			nil, v1alpha1.ReasonControlPlaneGuard, "control-plane node cp-1 is being rebooted",
		},
		"not while another is being rebooted": {
			one(policy("all", nine, holding(1, entry("cp-2", 1))), needy("cp-1", cp), newHost("cp-2", cp, grant(1, protocol.GrantActive))),
			nil, v1alpha1.ReasonControlPlaneGuard, "control-plane node cp-2 is being rebooted",
		},
		"not while another is not Ready": {
			one(policy("all", nine), needy("cp-1", cp), newHost("cp-2", cp, notReady)),
			nil, v1alpha1.ReasonControlPlaneGuard, "control-plane node cp-2 is not Ready",
		},
		"a cordoned control-plane node does not block others": {one(policy("all", nine), needy("cp-1", cp), newHost("cp-2", cp, cordoned)), []string{"cp-1"}, "", ""},
		"a single one": {one(policy("all"), needy("cp-1", cp)), []string{"cp-1"}, "", ""},
		"not when another control-plane node falls under another policy": {
			one(policy("all", nine), needy("cp-1", cp), newHost("cp-2", cp, label("special", "yes")), needy("worker")).with(policy("special", selects("special", "yes"), priority(1))),
			[]string{"worker"},
			v1alpha1.ReasonPolicyConflict, "one policy must govern all control-plane nodes; policy all does not govern cp-2",
		},
		"not when another control-plane node falls under no policy": {
			one(policy("some", selects("some", "yes")), needy("cp-1", cp, label("some", "yes")), newHost("cp-2", cp)),
			nil, v1alpha1.ReasonPolicyConflict, "one policy must govern all control-plane nodes; policy some does not govern cp-2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "granted", tc.granted, names(p.Ledger.Granted))
			for _, d := range p.Decisions {
				if d.Reason == tc.reason && d.Message == tc.message {
					return
				}
			}
			if tc.reason != "" {
				t.Errorf("decisions: %+v; want %s, %q", p.Decisions, tc.reason, tc.message)
			}
		})
	}
}

// TestReboots_ControlPlaneMessageIsSteady checks that the message does not depend on the informer's
// random order. Otherwise it would be written again and again.
func TestReboots_ControlPlaneMessageIsSteady(t *testing.T) {
	cp := label(record.ControlPlaneLabels[0], "")
	a := one(policy("all"), needy("cp-1", cp), newHost("cp-2", cp, notReady), newHost("cp-3", cp, notReady))
	b := one(policy("all"), newHost("cp-3", cp, notReady), newHost("cp-2", cp, notReady), needy("cp-1", cp))
	same(t, "the plan of another order", a.plan(), b.plan(), planOptions...)
}

// TestNodeOf_KnowsTheControlPlaneOfEachDistribution uses the labels that distributions set: roles
// of k3s and RKE2 have value "true", those of kubeadm none.
func TestNodeOf_KnowsTheControlPlaneOfEachDistribution(t *testing.T) {
	const role = "node-role.kubernetes.io/"
	cases := map[string]struct {
		labels map[string]string
		want   bool
	}{
		"kubeadm, kind, Cluster API, Talos":           {map[string]string{role + "control-plane": "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}, true},
		"kubeadm before 1.24":                         {map[string]string{role + "control-plane": "", role + "master": ""}, true},
		"kubeadm before 1.20, and OpenShift's master": {map[string]string{role + "master": "", "node.openshift.io/os_id": "rhcos"}, true},
		"kubeadm, a worker":                           {map[string]string{"kubernetes.io/hostname": "w1"}, false},
		"k3s with sqlite":                             {map[string]string{role + "control-plane": "true", "node.kubernetes.io/instance-type": "k3s"}, true},
		"k3s with embedded etcd":                      {map[string]string{role + "control-plane": "true", role + "etcd": "true", "node.kubernetes.io/instance-type": "k3s"}, true},
		"k3s before 1.34":                             {map[string]string{role + "control-plane": "true", role + "etcd": "true", role + "master": "true"}, true},
		"k3s, etcd alone (--disable-apiserver)":       {map[string]string{role + "etcd": "true"}, true},
		"k3s, an agent":                               {map[string]string{"node.kubernetes.io/instance-type": "k3s"}, false},
		"RKE2, a server":                              {map[string]string{role + "control-plane": "true", role + "etcd": "true", "node.kubernetes.io/instance-type": "rke2"}, true},
		"RKE2, etcd alone":                            {map[string]string{role + "etcd": "true", "rke.cattle.io/etcd-role": "true"}, true},
		"RKE2, an agent of Rancher":                   {map[string]string{role + "worker": "true", "rke.cattle.io/machine": "x"}, false},
		"RKE1":                                        {map[string]string{role + "controlplane": "true"}, true},
		"k0s, a controller that runs pods":            {map[string]string{role + "control-plane": "true", "node.k0sproject.io/role": "control-plane"}, true},
		"EKS":                                         {map[string]string{"eks.amazonaws.com/nodegroup": "a", "eks.amazonaws.com/capacityType": "SPOT"}, false},
		"GKE":                                         {map[string]string{"cloud.google.com/gke-nodepool": "a"}, false},
		"AKS, a system pool":                          {map[string]string{"kubernetes.azure.com/mode": "system", "kubernetes.azure.com/role": "agent", role + "agent": ""}, false},
		"a custom role":                               {map[string]string{role + "infra": "", role + "worker": ""}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "control plane", tc.want, record.Of(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}).ControlPlane)
		})
	}
}
