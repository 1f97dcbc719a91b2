package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/rack"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// kubeletGrace is the time that a machine may be silent before its node is NotReady.
	kubeletGrace = 12 * time.Second
	// patience is the timeout for operations that take seconds on an idle machine.
	patience = 2 * time.Minute
	// operator is the operator's namespace, and agents the name of its DaemonSet.
	operator = "reboot-operator-system"
	agents   = "reboot-operator-agent"
	policy   = "default"
)

// suites lists the Debian releases of node-1, node-2 and node-3, with systemd 252, 252 and 257.
var suites = []string{"bookworm", "bookworm", "trixie"}

// site is a cluster of real nodes with the operator and a workload.
type site struct {
	client.WithWatch
	cluster *embedded.Cluster
	rack    *rack.Rack
	// release is the installed release, or nil for this checkout.
	release *release
	began   time.Time
}

// build builds the site. Everything it starts ends with the suite, even if that fails or is
// interrupted.
func build(ctx context.Context) *site {
	GinkgoHelper()
	s := &site{began: time.Now()}
	s.release = published(s)
	s.startCluster(ctx)
	s.startRack(ctx)
	s.eventually(ctx, "nodes Ready", func(g Gomega) {
		for _, m := range s.rack.Machines {
			g.Expect(v1alpha1.NodeCondition(s.node(ctx, m.Name).Status.Conditions, corev1.NodeReady).Status).To(Equal(corev1.ConditionTrue), m.Name)
		}
	})
	if s.release == nil {
		Expect(s.cluster.Apply(ctx, filepath.Join(testenv.Root(), "config", "default"))).To(Succeed())
	} else {
		s.release.install(ctx)
	}
	workload, err := os.ReadFile("workload.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(s.cluster.ApplyManifest(ctx, workload)).To(Succeed())
	s.eventually(ctx, "operator and workload run", func(g Gomega) { s.allPodsReady(ctx, g) })
	s.eventually(ctx, "agents report", func(g Gomega) {
		for _, m := range s.rack.Machines {
			g.Expect(v1alpha1.NodeCondition(s.node(ctx, m.Name).Status.Conditions, v1alpha1.NodeRebootRequired).Status).To(Equal(corev1.ConditionFalse), m.Name)
		}
	})
	return s
}

func (s *site) startCluster(ctx context.Context) {
	GinkgoHelper()
	var err error
	s.cluster, err = embedded.Start(ctx, embedded.Options{KubeletGrace: kubeletGrace})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.cluster.Stop)
	s.WithWatch, err = testenv.NewClient(s.cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	s.logf("control plane up")
}

func (s *site) startRack(ctx context.Context) {
	GinkgoHelper()
	prepared := filepath.Join(testenv.Root(), "bin", "e2e")
	var err error
	s.rack, err = rack.Start(ctx, rack.Options{
		Prepared: prepared, Suites: suites, Images: s.images(prepared),
		Service: embedded.ServiceAddress, Server: s.cluster.Address(), Kubeconfig: s.kubeconfig,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(s.rack.Stop()).To(Succeed())
		s.logf("everything taken down")
	})
	s.logf("%d machines switched on", len(suites))
}

// images returns the images for the machines' containerds: two of the operator, and one for
// everything else.
func (s *site) images(prepared string) []rack.Image {
	GinkgoHelper()
	all := []rack.Image{{Name: "localhost/idle:1", Program: filepath.Join(prepared, "idle"), Entrypoint: []string{"/idle"}}}
	for _, name := range []string{"manager", "agent"} {
		if s.release != nil {
			all = append(all, rack.Image{Archive: filepath.Join(s.release.folder, name+".oci.tar")})
			continue
		}
		image, err := rack.ReadDockerfile(filepath.Join(testenv.Root(), "Dockerfile"), name, s.image(name), prepared)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, image)
	}
	return all
}

// image returns the full name of one of the operator's images.
func (s *site) image(name string) string {
	tag := "unreleased"
	if s.release != nil {
		tag = s.release.version
	}
	return "ghcr.io/reboot-operator/" + name + ":" + tag
}

// kubeconfig returns the kubeconfig of a node, with the address of the API server that pods use.
func (s *site) kubeconfig(node string) ([]byte, error) {
	path, err := s.cluster.UserKubeconfig("system:node:"+node, "system:nodes")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + embedded.ServiceAddress
	}
	return clientcmd.Write(*config)
}

// logf prints a message with the time since the start.
func (s *site) logf(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "  %6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// eventually waits until a condition holds and prints it. It gives up if a machine has failed.
func (s *site) eventually(ctx context.Context, description string, holds func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		if err := s.rack.Err(); err != nil {
			StopTrying("a machine has failed").Wrap(err).Now()
		}
		holds(g)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed(), description)
	s.logf("%s", description)
}

// node returns a node, or an empty Node if it does not exist yet.
func (s *site) node(ctx context.Context, name string) *corev1.Node {
	node := &corev1.Node{}
	if err := s.Get(ctx, types.NamespacedName{Name: name}, node); err != nil {
		return &corev1.Node{}
	}
	return node
}

// pods returns the pods that have not ended. Pods that a kubelet ended during a shutdown and that
// were not evicted stay.
func (s *site) pods(ctx context.Context, g Gomega, namespace string) []corev1.Pod {
	var list corev1.PodList
	g.Expect(s.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
}

// allPodsReady requires the expected number of Ready pods, because a new cluster has none at first.
func (s *site) allPodsReady(ctx context.Context, g Gomega) {
	g.Expect(s.pods(ctx, g, operator)).To(And(HaveLen(2+len(suites)), HaveEach(Satisfy(isReady))))
	g.Expect(s.pods(ctx, g, "shop")).To(And(HaveLen(4+3+2), HaveEach(Satisfy(isReady))))
}

// isReady reports whether a PodDisruptionBudget would count the pod.
func isReady(pod corev1.Pod) bool { return judge.IsAvailable(&pod) }

func (s *site) policyStatus(ctx context.Context, g Gomega) v1alpha1.RebootPolicyStatus {
	var object v1alpha1.RebootPolicy
	g.Expect(s.Get(ctx, types.NamespacedName{Name: policy}, &object)).To(Succeed())
	return object.Status
}

// events returns the messages of events with a reason that concern a node.
func (s *site) events(ctx context.Context, g Gomega, node, reason string) []string {
	list, err := s.cluster.Client().CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	g.Expect(err).NotTo(HaveOccurred())
	var messages []string
	for _, event := range list.Items {
		if event.InvolvedObject.Kind == "Node" && event.InvolvedObject.Name == node {
			messages = append(messages, event.Message)
		}
	}
	return messages
}

// logEnd is the number of lines shown of each log.
const logEnd = 15

// show prints what an administrator would look at, and the end of every log of the operator.
func (s *site) show(ctx context.Context) {
	for _, args := range []string{
		"get rebootpolicies,nodes -o wide", "get pods -A -o wide", "get rebootpolicies -o yaml",
		"get nodes -o jsonpath={range.items[*]}{.metadata.name}{.metadata.annotations}{.status.conditions}{\"\\n\"}{end}",
		"get events -A --sort-by=.lastTimestamp",
	} {
		output, err := s.cluster.Kubectl(ctx, nil, strings.Fields(args)...)
		s.logf("kubectl %s: %v\n%s", args, err, output)
	}
	for _, m := range s.rack.Machines {
		// The pattern is valid, so there is no error.
		logs, _ := filepath.Glob(m.Disk("var/log/pods/" + operator + "_*/*/*.log"))
		for _, path := range append(logs, filepath.Join(m.Folder(), "console.log")) {
			text, err := os.ReadFile(path)
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			s.logf("%s: %v\n%s", path, err, strings.Join(lines[max(0, len(lines)-logEnd):], "\n"))
		}
	}
}
