// Kured turns the manifest of a kured DaemonSet into a RebootPolicy, and says what it could not carry over:
//
//	go run ./kubectl-reboot/kured < kured-ds.yaml > policy.yaml
//
// The policy goes to standard output, the report to standard error. docs/migrate.md has the steps around it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Exit codes: the input cannot be converted; the command line cannot work.
const (
	exitBadInput = 1
	exitUsage    = 2
)

const usage = `Turns the manifest of a kured DaemonSet into a RebootPolicy, and says what it could not carry over.

Usage: kured [FILE]

FILE is a rendered manifest, such as of kubectl get daemonset -o yaml, helm template or kubectl kustomize; absent: standard
input. The policy goes to standard output, the report to standard error.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("kured", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err == nil && flags.NArg() > 1:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(1))
	}
	if err != nil {
		fmt.Fprintf(stderr, "kured: %v\n", err)
		return exitUsage
	}
	manifest, err := read(flags.Arg(0), stdin)
	if err == nil {
		err = convertAll(manifest, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "kured: %v\n", err)
		return exitBadInput
	}
	return 0
}

func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "" || file == "-" {
		manifest, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return manifest, nil
	}
	return os.ReadFile(file) // its errors name the file
}

// convertAll writes nothing to stdout unless all of it can be written: half a manifest may not be applied.
func convertAll(manifest []byte, stdout, stderr io.Writer) error {
	found, err := findInstallations(manifest)
	if err != nil {
		return err
	}
	var policies, reports bytes.Buffer
	names := map[string]bool{}
	for _, k := range found {
		c, err := convert(k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.where(), err)
		}
		c.policy.Name = policyName(k, names)
		if len(found) > 1 {
			c.report.open = append(c.report.open, line{"there are several kureds", "a node that two policies select is not rebooted: " +
				"let each node fall under one nodeSelector, or give one policy the higher spec.priority. Control-plane nodes must all fall under the same"})
		}
		if err := c.write(&policies); err != nil {
			return err
		}
		c.tell(&reports)
	}
	if _, err := policies.WriteTo(stdout); err != nil {
		return fmt.Errorf("writing the policy: %w", err)
	}
	_, err = reports.WriteTo(stderr)
	return err
}
