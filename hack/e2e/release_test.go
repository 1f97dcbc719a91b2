package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// releaseFolder is the variable with the folder that hack/release.sh created. If it is set, only
// that release is installed.
const releaseFolder = "RELEASE"

// release is a published release, used as somebody without a checkout would: the images are on the
// machines, Helm installs the chart, and the plugin is unpacked. All commands are printed.
type release struct {
	site    *site
	folder  string
	version string
	// tools is the folder of the plugin.
	tools string
	// began is the time when the installation began.
	began time.Time
}

// published returns the release to install, or nil.
func published(s *site) *release {
	GinkgoHelper()
	folder := os.Getenv(releaseFolder)
	if folder == "" {
		return nil
	}
	charts, err := filepath.Glob(filepath.Join(folder, "reboot-operator-*.tgz"))
	Expect(err).NotTo(HaveOccurred())
	Expect(charts).To(HaveLen(1), "%s=%s holds no release", releaseFolder, folder)
	number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(charts[0]), "reboot-operator-"), ".tgz")
	return &release{site: s, folder: folder, version: "v" + number, tools: GinkgoT().TempDir()}
}

// install installs the chart, and waits until everything runs.
func (r *release) install(ctx context.Context) {
	GinkgoHelper()
	r.began = time.Now()
	r.run(ctx, "tar -xzf kubectl-reboot_linux_"+runtime.GOARCH+".tar.gz -C $HOME")
	r.run(ctx, "helm install reboot-operator reboot-operator-"+strings.TrimPrefix(r.version, "v")+".tgz --namespace "+operator+" --create-namespace")
	r.run(ctx, "kubectl wait pods --all -n "+operator+" --for=condition=Ready --timeout=2m")
}

// reboot makes the first reboot, with a policy like the one that the plugin proposes.
func (r *release) reboot(ctx context.Context) {
	GinkgoHelper()
	r.run(ctx, "kubectl reboot status")
	r.run(ctx, `kubectl apply -f - <<EOF
apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: first}
spec: {}
EOF`)
	r.site.logf("update_engine installs an update on node-1")
	Expect(r.site.machine("node-1").InstallUpdate()).To(Succeed())
	r.run(ctx, "kubectl wait rebootpolicy first --for=jsonpath='{.status.history[0].result}'=Succeeded --timeout=2m")
	r.site.logf("from helm install to the first reboot by a policy: %s", terminal.Seconds(time.Since(r.began)))
	Expect(r.run(ctx, "kubectl reboot history")).To(ContainSubstring("node-1"))
	r.run(ctx, "kubectl delete rebootpolicy first")
}

// run runs a shell command in the release's folder, and returns its output.
func (r *release) run(ctx context.Context, line string) string {
	GinkgoHelper()
	r.site.logf("$ %s", line)
	bin := filepath.Join(testenv.Root(), "bin")
	shell := exec.CommandContext(ctx, "sh", "-ec", line)
	shell.Dir = r.folder
	shell.Env = append(os.Environ(), "KUBECONFIG="+r.site.cluster.Kubeconfig(), "HOME="+r.tools,
		fmt.Sprintf("PATH=%s:%s:%s:%s", r.tools, filepath.Join(bin, "k8s"), filepath.Join(bin, "helm"), os.Getenv("PATH")))
	output, err := shell.CombinedOutput()
	for text := range strings.Lines(string(output)) {
		fmt.Fprint(os.Stdout, "            ", text)
	}
	Expect(err).NotTo(HaveOccurred())
	return string(output)
}
