package controllers

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// SetupPolicies registers the controller of policies as the manager runs it.
func SetupPolicies(mgr ctrl.Manager, o Options) error {
	recorder := brief{mgr.GetEventRecorder(v1alpha1.FieldOwnerManager)}
	notifier, err := NewNotifier(mgr, recorder, o)
	if err != nil {
		return err
	}
	now := o.Clock
	if now == nil {
		now = clock.RealClock{}
	}
	r := &RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder, Clock: now,
		Gates: NewGates(mgr, o), Notifier: notifier, AgentNamespace: o.Namespace,
	}
	return r.SetupWithManager(mgr)
}
