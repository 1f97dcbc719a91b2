package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
)

// Machine is the hardware and the kubelet of a simulated node: it goes down, and comes back with a new boot ID. To the
// API server it is the node itself, so the audit log distinguishes its writes from everybody else's.
type Machine struct {
	// Node is the node's name.
	Node string
	// BootIDFile represents /proc/sys/kernel/random/boot_id.
	BootIDFile string

	client kubernetes.Interface
	clock  clock.Clock
}

// NewMachine is the machine under an existing simulated node. Its boot ID file is written with the node's boot ID.
func NewMachine(ctx context.Context, c *Cluster, node, bootIDFile string) (*Machine, error) {
	path, err := c.UserKubeconfig("system:node:"+node, "system:nodes")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client of node %q: %w", node, err)
	}
	object, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading node %q: %w", node, err)
	}
	m := &Machine{Node: node, BootIDFile: bootIDFile, client: client, clock: clock.RealClock{}}
	return m, m.writeBootID(object.Status.NodeInfo.BootID)
}

// Down makes the node's condition Ready Unknown, as when the kubelet has fallen silent.
func (m *Machine) Down(ctx context.Context) error {
	return m.patch(ctx, m.ready(corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."), "")
}

// Up draws a new boot ID and makes the node Ready with it.
func (m *Machine) Up(ctx context.Context) error {
	bootID := string(uuid.NewUUID())
	if err := m.writeBootID(bootID); err != nil {
		return err
	}
	return m.patch(ctx, m.ready(corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"), bootID)
}

func (m *Machine) writeBootID(bootID string) error {
	if err := os.WriteFile(m.BootIDFile, []byte(bootID+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the boot ID of %q: %w", m.Node, err)
	}
	return nil
}

func (m *Machine) ready(status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	now := metav1.NewTime(m.clock.Now())
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

// patch writes one condition and, where it is not empty, the boot ID, in one revision.
func (m *Machine) patch(ctx context.Context, condition corev1.NodeCondition, bootID string) error {
	status := map[string]any{"conditions": []corev1.NodeCondition{condition}}
	if bootID != "" {
		status["nodeInfo"] = map[string]any{"bootID": bootID}
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of node %q: %w", m.Node, err)
	}
	_, err = m.client.CoreV1().Nodes().Patch(ctx, m.Node, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of node %q: %w", m.Node, err)
	}
	return nil
}
