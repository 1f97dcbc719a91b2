package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("docs/kubectl.md", func() {
	It("uses commands and flags that exist", func() {
		text, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "kubectl.md"))
		Expect(err).NotTo(HaveOccurred())
		lines := regexp.MustCompile("(?m)(?:^\\$ |\\| `)kubectl reboot ([^`|\n]+)").FindAllStringSubmatch(string(text), -1)
		Expect(len(lines)).To(BeNumerically(">", 8))
		for _, line := range lines {
			args := regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`).FindAllString(line[1], -1)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], `"`, "")
			}
			stdout, stderr, err := run(append(args, "--help"))
			Expect(err).NotTo(HaveOccurred(), "%s: %s", line[1], stderr)
			Expect(stdout).To(ContainSubstring("kubectl reboot "+args[0]+" "), line[1])
		}
	})
})
