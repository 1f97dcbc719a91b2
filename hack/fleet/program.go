package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Names of the containers of config/manager and config/agent, which are those of the programs too.
const (
	managerProgram = "manager"
	agentProgram   = "agent"
)

// programOf is the process that represents the first container of a pod: with its arguments and environment, and then
// those that name where things are on this machine.
func programOf(pod *corev1.Pod, kubeconfig, metrics string, host *Host) (process.Program, error) {
	container := pod.Spec.Containers[0]
	env, err := environment(pod, container.Env)
	if err != nil {
		return process.Program{}, err
	}
	args := append(slices.Clone(container.Args), "--kubeconfig="+kubeconfig, "--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address="+metrics)
	if container.Name == agentProgram {
		args = append(args, "--dbus-address="+host.Bus.Address(), "--host-root="+host.Root, "--boot-id-file="+host.BootIDFile())
	}
	return process.Program{Name: pod.Name, Path: testenv.Shipped(container.Name), Args: args, Env: env}, nil
}

// commandOf is the process that represents the first container of a pod that states what it runs. It finds the API server and
// kubectl, and has a folder to write to, as in its image.
func commandOf(pod *corev1.Pod, home, kubeconfig, tools string) (process.Program, error) {
	container := pod.Spec.Containers[0]
	env, err := environment(pod, container.Env)
	if err != nil {
		return process.Program{}, err
	}
	return process.Program{
		Name: pod.Name,
		Path: container.Command[0],
		Args: slices.Concat(container.Command[1:], container.Args),
		Env: append(env, "KUBECONFIG="+kubeconfig, "HOME="+home, "TMPDIR="+home,
			"PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH")),
	}, nil
}

func environment(pod *corev1.Pod, vars []corev1.EnvVar) ([]string, error) {
	fields := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
		"status.hostIP": "127.0.0.1",
	}
	var env []string
	for _, v := range vars {
		value := v.Value
		if from := v.ValueFrom; from != nil {
			if from.FieldRef == nil || fields[from.FieldRef.FieldPath] == "" {
				return nil, fmt.Errorf("pod %s: variable %s comes from something that is not simulated", pod.Name, v.Name)
			}
			value = fields[from.FieldRef.FieldPath]
		}
		env = append(env, v.Name+"="+value)
	}
	return env, nil
}
