package controllers

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/reboot-operator/reboot-operator/controllers/agentset"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
)

// agentPods gives access to the cached pods of the agents. Nothing waits for them: a manager that
// may not read them still decides about reboots, and reports that it does not know whether the
// agents work.
type agentPods struct {
	cache     cache.Cache
	namespace string

	// state is the state of the first list.
	state atomic.Int32
	// changed is set by each event. known holds the last result. This is an optimisation: reading
	// 15,000 pods takes each pass 19 ms.
	changed atomic.Bool
	known   *report.Agents
}

// The states of agentPods.
const (
	agentsAwaited int32 = iota
	agentsOverdue
	agentsListed
)

// readAgents returns the agents, or nil while nothing is known yet.
func (f *fleetReader) readAgents(ctx context.Context) (*report.Agents, error) {
	switch f.agents.state.Load() {
	case agentsAwaited:
		return nil, nil
	case agentsOverdue:
		return &report.Agents{Unknown: fmt.Sprintf("the manager could not list the agents' pods in namespace %s, see its log", f.agents.namespace)}, nil
	}
	if f.agents.known != nil && !f.agents.changed.Swap(false) {
		return f.agents.known, nil
	}
	var pods corev1.PodList
	// As an optimisation no copies are made, because the pods are only read. Copies of 15,000 pods
	// take another 20 ms and 20 MB.
	if err := f.agents.cache.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		f.agents.changed.Store(true)
		return nil, fmt.Errorf("listing the agents' pods: %w", err)
	}
	f.agents.known = &report.Agents{Pods: make(map[string]report.AgentPod, len(pods.Items))}
	for i := range pods.Items {
		pod := agentPodOf(&pods.Items[i])
		if node := pods.Items[i].Spec.NodeName; node != "" && !f.agents.known.Pods[node].Ready {
			f.agents.known.Pods[node] = pod
		}
	}
	return f.agents.known, nil
}

// agentEvents returns a source of events about the agents' pods in a namespace. They have their own
// cache, because every watch of the manager waits until its whole cache is filled.
func (f *fleetReader) agentEvents(mgr ctrl.Manager, namespace string) (source.Source, error) {
	pods, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Label:      labels.SelectorFromSet(agentset.PodLabels),
			Transform:  trimAgentPod,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the agents' pods: %w", err)
	}
	if err := mgr.Add(pods); err != nil {
		return nil, fmt.Errorf("adding the cache of the agents' pods: %w", err)
	}
	f.agents = agentPods{cache: pods, namespace: namespace}
	return source.Func(f.watchAgents), nil
}

func agentPodOf(pod *corev1.Pod) report.AgentPod {
	p := report.AgentPod{Since: pod.CreationTimestamp.Time}
	for _, c := range pod.Status.Conditions {
		p.Ready, p.Since = c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil, c.LastTransitionTime.Time
	}
	return p
}

// trimAgentPod keeps the fields that agentPodOf reads. Of the conditions it keeps only Ready.
func trimAgentPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			trimmed.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return trimmed, nil
}

// watchAgents is a source that starts to watch the agents' pods without waiting.
func (f *fleetReader) watchAgents(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	informer, err := f.agents.cache.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the agents' pods: %w", err)
	}
	enqueue := func(object any) { f.agentChanged(ctx, object, queue) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if !isInInitialList {
				enqueue(object)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*corev1.Pod)
			pod, alsoOK := after.(*corev1.Pod)
			if ok && alsoOK && (agentPodOf(was) != agentPodOf(pod) || was.Spec.NodeName != pod.Spec.NodeName) {
				enqueue(after)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			enqueue(object)
		},
	})
	if err != nil {
		return fmt.Errorf("following the agents' pods: %w", err)
	}
	go f.awaitAgents(ctx, informer.HasSynced, queue)
	return nil
}

// awaitAgents enqueues all policies once the agents' pods are listed, and also when that takes too
// long.
func (f *fleetReader) awaitAgents(ctx context.Context, hasSynced func() bool, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	reach := func(state int32) {
		f.agents.state.Store(state)
		policies := f.listForEvent(ctx)
		for i := range policies {
			queue.Add(request(policies[i].Name))
		}
	}
	listCtx, cancel := context.WithTimeout(ctx, f.paces.AgentList)
	defer cancel()
	if !toolscache.WaitForCacheSync(listCtx.Done(), hasSynced) && ctx.Err() == nil {
		reach(agentsOverdue)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), hasSynced) {
		reach(agentsListed)
	}
}

// agentChanged enqueues the policies of a pod's node after a short delay.
func (f *fleetReader) agentChanged(ctx context.Context, object any, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	f.agents.changed.Store(true)
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" {
		return
	}
	node := &corev1.Node{}
	var affected []reconcile.Request
	switch err := f.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); {
	case err == nil:
		affected = f.policiesOf(ctx, node)
	case !apierrors.IsNotFound(err): // otherwise the event of the Node comes later
		ctrl.LoggerFrom(ctx).Error(err, "Cannot determine which policies an agent's pod affects, and asks all", "Pod", klog.KObj(pod))
		affected = f.allPolicies(ctx, node)
	}
	for _, policy := range affected {
		queue.AddAfter(policy, f.paces.AgentEvent)
	}
}
