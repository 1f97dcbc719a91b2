package embedded

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// ServiceAddress is the address by which pods know the API server: the first address of the
// services' range, port 443. Nothing listens there unless somebody forwards it to Cluster.Address.
const ServiceAddress = "10.0.0.1"

//go:embed audit_policy.yaml
var auditPolicy []byte

//go:embed stages.yaml
var stages []byte

// serverPrograms returns etcd and kube-apiserver and writes the files they need. Their data is
// thrown away, so fsync is off.
func (c *Cluster) serverPrograms(port, etcdPort, peerPort int) ([]process.Program, error) {
	etcd, peer := fmt.Sprintf("http://127.0.0.1:%d", etcdPort), fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	c.etcd = etcd
	files, err := c.serverFiles()
	if err != nil {
		return nil, err
	}
	if c.options.Bare {
		// Nothing here removes the taint of a new Node.
		files = append(files, "--disable-admission-plugins=TaintNodesByCondition")
	} else {
		files = append(files, "--audit-log-path="+c.auditLog(), "--audit-log-mode=blocking", "--audit-log-maxsize=10000")
	}
	if c.options.ServerOnly {
		files = append(files, "--disable-admission-plugins=ServiceAccount") // Nothing here creates ServiceAccounts.
	}
	return []process.Program{
		{Name: Etcd, Path: c.asset("etcd"), Args: []string{
			"--data-dir=" + filepath.Join(c.data, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		}},
		{Name: KubeAPIServer, Path: c.asset("kube-apiserver"), Args: append(files,
			"--etcd-servers="+etcd,
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			// Nothing here reaches services, and a loopback address is refused as their endpoint.
			"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--service-account-issuer=https://kubernetes.default.svc",
		)},
	}, nil
}

// serverFiles writes the API server's certificates, keys and audit policy, and returns the flags
// that name them.
func (c *Cluster) serverFiles() ([]string, error) {
	serving, err := c.authority.server("kube-apiserver")
	if err != nil {
		return nil, err
	}
	_, accounts, err := newKey()
	if err != nil {
		return nil, err
	}
	flags := []string{"--cert-dir=" + c.Dir}
	for _, file := range []struct {
		name    string
		content []byte
		flags   []string
	}{
		{"ca.crt", c.authority.pem, []string{"client-ca-file"}},
		{"server.crt", serving.certificate, []string{"tls-cert-file"}},
		{"server.key", serving.key, []string{"tls-private-key-file"}},
		{"accounts.key", accounts, []string{"service-account-key-file", "service-account-signing-key-file"}},
		{"audit-policy.yaml", auditPolicy, []string{"audit-policy-file"}},
	} {
		path, err := c.write(file.name, file.content)
		if err != nil {
			return nil, err
		}
		for _, flag := range file.flags {
			flags = append(flags, "--"+flag+"="+path)
		}
	}
	return flags, nil
}

// controllerPrograms returns kube-controller-manager, kube-scheduler and kwok, each with its own
// user.
func (c *Cluster) controllerPrograms() ([]process.Program, error) {
	var kubeconfigs [3]string
	for i, user := range []string{"system:kube-controller-manager", "system:kube-scheduler", "kwok"} {
		path, err := c.UserKubeconfig(user, "system:masters")
		if err != nil {
			return nil, err
		}
		kubeconfigs[i] = path
	}
	kwokConfig, err := c.write("kwok.yaml", stages)
	if err != nil {
		return nil, err
	}
	scheduler, err := c.write("scheduler.yaml", schedulerConfig(kubeconfigs[1]))
	if err != nil {
		return nil, err
	}
	programs := []process.Program{
		{Name: "kube-controller-manager", Path: c.asset("kube-controller-manager"), Args: []string{
			"--kubeconfig=" + kubeconfigs[0], "--leader-elect=false", "--secure-port=0",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + filepath.Join(c.Dir, "accounts.key"),
			"--root-ca-file=" + filepath.Join(c.Dir, "ca.crt"),
			// With the default of 20 requests per second, replacement pods arrive late and
			// PodDisruptionBudgets look slow.
			"--kube-api-qps=200", "--kube-api-burst=400",
			// Simulated nodes have no heartbeat.
			"--node-monitor-grace-period=" + cmp.Or(c.options.KubeletGrace, never).String(),
		}},
		{Name: "kube-scheduler", Path: c.asset("kube-scheduler"), Args: []string{
			"--config=" + scheduler, "--secure-port=0",
		}},
		{Name: "kwok", Path: c.asset("kwok"), Env: []string{"HOME=" + c.Dir}, Args: []string{
			"--kubeconfig=" + kubeconfigs[2], "--config=" + kwokConfig,
			"--manage-nodes-with-annotation-selector=" + fakeNode + "=" + fakeNodeValue,
			"--node-lease-duration-seconds=0",
		}},
	}
	if c.options.Bare {
		programs = programs[:1]
		programs[0].Args = append(programs[0].Args, "--controllers=disruption-controller,serviceaccount-controller")
	}
	return programs, nil
}

func schedulerConfig(kubeconfig string) []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 200, burst: 400}
`, kubeconfig)
}

// Choose ports below the kernel's ephemeral range (32768 and up on Linux). Otherwise an outgoing
// connection could take a port before the server binds it.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort returns a free TCP port on 127.0.0.1.
func FreePort(ctx context.Context) (int, error) {
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts returns n different free TCP ports on 127.0.0.1.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		ports, listeners = append(ports, port), append(listeners, l)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("finding free ports on 127.0.0.1: none")
}
