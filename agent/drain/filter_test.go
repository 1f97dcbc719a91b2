package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// podWrapper builds pods for the tables. By default it is a running pod of a ReplicaSet with a
// grace period of 30 s.
type podWrapper struct{ pod corev1.Pod }

func makePod(name string) *podWrapper {
	return (&podWrapper{corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(30))},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}}).owner("apps/v1", "ReplicaSet")
}

func (w *podWrapper) owner(apiVersion, kind string) *podWrapper {
	w.pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: "owner", UID: "owner", Controller: new(true)},
	}
	return w
}

func (w *podWrapper) bare() *podWrapper { w.pod.OwnerReferences = nil; return w }

func (w *podWrapper) notController() *podWrapper {
	w.pod.OwnerReferences[0].Controller = nil
	return w
}

func (w *podWrapper) label(key, value string) *podWrapper {
	w.pod.Labels = map[string]string{key: value}
	return w
}

func (w *podWrapper) mirror() *podWrapper {
	w.pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	return w
}

func (w *podWrapper) phase(phase corev1.PodPhase) *podWrapper { w.pod.Status.Phase = phase; return w }

func (w *podWrapper) grace(seconds *int64) *podWrapper {
	w.pod.Spec.TerminationGracePeriodSeconds = seconds
	return w
}

// goesIn sets the grace period with which the pod was deleted.
func (w *podWrapper) goesIn(seconds int64) *podWrapper {
	w.pod.DeletionGracePeriodSeconds = &seconds
	return w
}

func (w *podWrapper) terminating() *podWrapper {
	w.pod.DeletionTimestamp = new(metav1.Unix(1000, 0))
	return w
}

func (w *podWrapper) volume(source corev1.VolumeSource) *podWrapper {
	w.pod.Spec.Volumes = append(w.pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: source})
	return w
}

func TestDecide(t *testing.T) {
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	keepsEmptyDir := v1alpha1.Drain{EmptyDirData: v1alpha1.PodDisposalBlock}
	stays := decision{action: v1alpha1.DrainSkip}
	evicted := decision{action: v1alpha1.DrainEvict}
	const bareMessage = "no controller would create it again, and drain.unmanagedPods is Block"
	const emptyDirMessage = `the data in its emptyDir volume "data" would be lost, and drain.emptyDirData is Block`
	rule := func(action v1alpha1.DrainAction, key, value string) v1alpha1.DrainRule {
		return v1alpha1.DrainRule{PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}, Action: action}
	}
	one := func(r v1alpha1.DrainRule) v1alpha1.Drain { return v1alpha1.Drain{Rules: []v1alpha1.DrainRule{r}} }

	cases := map[string]struct {
		pod       *podWrapper
		spec      v1alpha1.Drain
		self      types.NamespacedName
		namespace labels.Set
		want      decision
	}{
		"a pod of a ReplicaSet is evicted with its own grace period": {pod: makePod("web"), want: evicted},
		"a pending pod is evicted as well":                           {pod: makePod("web").phase(corev1.PodPending), want: evicted},
		"behaviour 37: a mirror pod stays":                           {pod: makePod("etcd").owner("v1", "Node").mirror(), want: stays},
		"behaviour 37: a DaemonSet's pod stays":                      {pod: makePod("cni").owner("apps/v1", "DaemonSet"), want: stays},
		"behaviour 40: the owner reference alone decides, so nothing can fail: another group's DaemonSet": {
			pod: makePod("cni").owner("apps.kruise.io/v1alpha1", "DaemonSet"), want: stays,
		},
		"a DaemonSet that owns but does not control does not keep the pod": {
			pod:  makePod("odd").owner("apps/v1", "DaemonSet").notController(),
			spec: v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}, want: evicted,
		},
		"behaviour 37: a succeeded pod stays":                          {pod: makePod("job").phase(corev1.PodSucceeded), want: stays},
		"behaviour 37: a failed pod stays, though nothing controls it": {pod: makePod("job").bare().phase(corev1.PodFailed), want: stays},
		"a completed pod that is being deleted stays":                  {pod: makePod("job").phase(corev1.PodSucceeded).terminating(), want: stays},
		"behaviour 41: the own pod stays, whatever rule selects it": {
			pod: makePod("agent").label("app", "agent"), spec: one(rule(v1alpha1.DrainDelete, "app", "agent")),
			self: types.NamespacedName{Namespace: "default", Name: "agent"}, want: stays,
		},
		"a pod with the own name in another namespace is not the own pod": {
			pod: makePod("agent"), self: types.NamespacedName{Namespace: "other", Name: "agent"}, want: evicted,
		},
		"behaviour 39: a bare pod is undrainable by default": {
			pod: makePod("bare").bare(), want: decision{action: v1alpha1.DrainEvict, undrainable: bareMessage},
		},
		"a bare pod is evicted with unmanagedPods Delete": {
			pod: makePod("bare").bare(), spec: v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}, want: evicted,
		},
		"a terminating bare pod is only waited for": {pod: makePod("bare").bare().terminating(), want: evicted},
		"a rule with action Delete does not lift unmanagedPods Block": {
			pod: makePod("bare").bare().label("stuck", "ok"), spec: one(rule(v1alpha1.DrainDelete, "stuck", "ok")),
			want: decision{action: v1alpha1.DrainDelete, undrainable: bareMessage},
		},
		"a pod with an emptyDir is evicted by default": {pod: makePod("cache").volume(emptyDir), want: evicted},
		"a pod with an emptyDir is undrainable with emptyDirData Block": {
			pod: makePod("cache").volume(emptyDir), spec: keepsEmptyDir,
			want: decision{action: v1alpha1.DrainEvict, undrainable: emptyDirMessage},
		},
		"other volumes do not count as emptyDir": {
			pod: makePod("cache").volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), spec: keepsEmptyDir,
			want: evicted,
		},
		"Skip leaves the pod, bare or not": {
			pod: makePod("keep").bare().label("keep", "true"), spec: one(rule(v1alpha1.DrainSkip, "keep", "true")), want: stays,
		},
		"WaitCompleted waits for a pod that could not be evicted": {
			pod: makePod("batch").bare().label("job", "batch"), spec: one(rule(v1alpha1.DrainWaitCompleted, "job", "batch")),
			want: decision{action: v1alpha1.DrainWaitCompleted},
		},
		"WaitCompleted is over when the pod has completed": {
			pod: makePod("batch").label("job", "batch").phase(corev1.PodSucceeded), want: stays,
			spec: one(rule(v1alpha1.DrainWaitCompleted, "job", "batch")),
		},
		"the first rule that matches wins": {
			pod: makePod("db").label("app", "db"),
			spec: v1alpha1.Drain{Rules: []v1alpha1.DrainRule{
				rule(v1alpha1.DrainSkip, "app", "web"),
				{PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, Order: 10},
				rule(v1alpha1.DrainDelete, "app", "db"),
			}},
			want: decision{action: v1alpha1.DrainEvict, order: 10},
		},
		"a rule for other namespaces does not match": {
			pod: makePod("db").label("app", "db"), namespace: labels.Set{"tier": "dev"},
			spec: one(v1alpha1.DrainRule{
				PodSelector:       v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
				Action:            v1alpha1.DrainSkip,
			}),
			want: evicted,
		},
		"a rule for the pod's namespace matches": {
			pod: makePod("db").label("app", "db"), namespace: labels.Set{"tier": "prod"},
			spec: one(v1alpha1.DrainRule{
				PodSelector:       v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
				Action:            v1alpha1.DrainSkip,
			}),
			want: stays,
		},
		"an empty namespaceSelector is every namespace": {
			pod: makePod("db").label("app", "db"),
			spec: one(v1alpha1.DrainRule{
				PodSelector:       v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				NamespaceSelector: &v1alpha1.LabelSelector{}, Action: v1alpha1.DrainSkip,
			}),
			want: stays,
		},
		"the cap shortens the grace period": {
			pod: makePod("web"), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 5},
		},
		"the cap shortens that of a terminating pod": {
			pod: makePod("web").terminating().goesIn(600), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 5},
		},
		"part of a second of the cap counts as a whole one": {
			pod: makePod("web"), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 1500 * time.Millisecond}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 2},
		},
		"the cap does not shorten that of a terminating pod that the policy keeps": {
			pod: makePod("bare").bare().terminating().goesIn(600), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}}, want: evicted,
		},
		"the cap changes nothing for a pod that terminates soon enough": {
			pod: makePod("web").terminating().goesIn(5), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}}, want: evicted,
		},
		"the cap changes nothing for a pod that terminates at once": {
			pod: makePod("web").terminating().goesIn(0), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}}, want: evicted,
		},
		"the cap never lengthens it": {
			pod: makePod("web"), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 600 * time.Second}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 30},
		},
		"a capped grace period is at least one second": {
			pod: makePod("web").grace(new(int64(0))), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 1},
		},
		"a pod without a grace period gets the cap": {
			pod: makePod("web").grace(nil), spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 5},
		},
		"a rule's cap overrides the general one": {
			pod: makePod("db").label("app", "db"),
			spec: v1alpha1.Drain{GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second}, Rules: []v1alpha1.DrainRule{{
				PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, GracePeriod: &v1alpha1.Duration{Duration: 20 * time.Second},
			}}},
			want: decision{action: v1alpha1.DrainEvict, gracePeriod: 20},
		},
		"a rule without a cap uses the general one": {
			pod: makePod("db").label("app", "db"),
			spec: v1alpha1.Drain{
				GracePeriod: &v1alpha1.Duration{Duration: 5 * time.Second},
				Rules:       []v1alpha1.DrainRule{rule(v1alpha1.DrainDelete, "app", "db")},
			},
			want: decision{action: v1alpha1.DrainDelete, gracePeriod: 5},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := compile(PodRules{Drain: tc.spec}, tc.self)
			if err != nil {
				t.Fatal(err)
			}
			got := f.decide(&tc.pod.pod, tc.namespace)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("decide (-want +got):\n%s", diff)
			}
		})
	}
}

func TestToleratesCordon(t *testing.T) {
	cases := map[string]struct {
		tolerations []corev1.Toleration
		want        bool
	}{
		"nothing":                            {},
		"everything":                         {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, true},
		"a cordon":                           {[]corev1.Toleration{{Key: "a"}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}, true},
		"a cordon that evicts":               {[]corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}, false},
		"a node that is not ready":           {[]corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}, false},
		"a cordon with a value":              {[]corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Value: "true"}}, false},
		"any taint that forbids new pods":    {[]corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}, true},
		"any taint that evicts running pods": {[]corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := toleratesCordon(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: tc.tolerations}}); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	app := v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	bad := v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	cases := map[string]struct {
		rules          []v1alpha1.DrainRule
		wantNamespaces bool
		wantErr        string
	}{
		"no rules need no namespaces": {},
		"a rule for every namespace needs none": {
			rules: []v1alpha1.DrainRule{{PodSelector: app}, {PodSelector: app, NamespaceSelector: &v1alpha1.LabelSelector{}}},
		},
		"a rule that selects namespaces needs their labels": {
			rules: []v1alpha1.DrainRule{{PodSelector: app}, {PodSelector: app, NamespaceSelector: &app}}, wantNamespaces: true,
		},
		"a bad podSelector is an error": {
			rules:   []v1alpha1.DrainRule{{PodSelector: app}, {PodSelector: bad}},
			wantErr: `reading drain rule 1: reading podSelector: "Near" is not a valid label selector operator`,
		},
		"a bad namespaceSelector is an error": {
			rules:   []v1alpha1.DrainRule{{PodSelector: app, NamespaceSelector: &bad}},
			wantErr: `reading drain rule 0: reading namespaceSelector: "Near" is not a valid label selector operator`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := compile(PodRules{Drain: v1alpha1.Drain{Rules: tc.rules}}, types.NamespacedName{})
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, gotErr); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if f.namespaces != tc.wantNamespaces {
				t.Errorf("namespaces = %v, want %v", f.namespaces, tc.wantNamespaces)
			}
		})
	}
}

// A tenant may write a megabyte into fields of a pod, and a node has room for many pods.
func TestTarget_KeepsLittleOfALargePod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "example.com/v1", Kind: "Owner", Name: "c", UID: types.UID(strings.Repeat("x", 1<<20)), Controller: new(true),
	}}}}
	for i := range 1000 {
		pod.Finalizers = append(pod.Finalizers, fmt.Sprintf("example.com/f%d", i))
	}
	kept, err := (&run{Drainer: &Drainer{}}).podFeed().target(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	const want = "example.com/f0, example.com/f1, example.com/f2 and 997 more"
	if kept.finalizers != want || len(kept.controller) > maxUID {
		t.Errorf("%q, and %d bytes of the controller's UID", kept.finalizers, len(kept.controller))
	}
}
