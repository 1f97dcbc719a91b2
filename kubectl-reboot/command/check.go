package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/doctor"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

func checkCommand(s *Session) *cobra.Command {
	var o output
	file := ""
	cmd := &cobra.Command{
		Use:   "check (-f FILE | [POLICY...])",
		Short: "Check a policy before you apply it",
		Long: `Check a policy before you apply it. This finds:
- what the API server would refuse
- windows that never open or are too short
- selectors and rings that match no node
- nodes that another policy selects with the same priority
- expressions of gates.objects that do not compile, and mistakes in PromQL
- drain rules that can never match
- a limit that allows no reboot

Without -f it checks the policies of the cluster. Without a cluster or nodes, a
warning says what was not checked. The running cluster is for kubectl reboot doctor.

It writes nothing. The exit code is 1 if there is a problem, and 0 if there are
only warnings.`,
		Example: `  kubectl reboot check -f policy.yaml
  kustomize build . | kubectl reboot check -f -
  kubectl reboot check workers`,
		ValidArgsFunction: completeNames(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" && len(args) > 0 {
				return errors.New("names and --filename exclude each other")
			}
			return runCheck(cmd.Context(), s, file, args, o)
		},
	}
	o.bind(cmd, asJSON, asYAML)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "Manifest with the policies in YAML or JSON, or - for standard input. Without it the policies of the cluster are checked.")
	return cmd
}

func runCheck(ctx context.Context, s *Session, file string, names []string, o output) error {
	var candidates []v1alpha1.RebootPolicy
	var written []*unstructured.Unstructured
	var err error
	if file != "" {
		if candidates, written, err = readPolicies(ctx, s, file); err != nil {
			return err
		}
	}
	f, unread := s.fleet(ctx)
	s.manager = fleet.Manager{} // the check does not involve the manager
	switch {
	case unread != nil && file == "":
		return unread
	case file == "":
		if candidates, err = choose(f.Policies, names); err != nil {
			return err
		}
	}
	checked := make([]doctor.Candidate, len(candidates))
	gates := gate.NewEvaluator(nil, nil, s.Clock, 0)
	for i := range candidates {
		p := &candidates[i]
		checked[i] = doctor.Candidate{Name: p.Name, Expression: gates.Invalid(&p.Spec)}
		if file != "" && unread == nil {
			if checked[i].Refused, err = refused(ctx, s, written[i]); err != nil {
				return err
			}
		}
	}
	if unread != nil {
		f.Now, unread = s.Clock.Now(), s.explained(unread)
	}
	report := doctor.CheckPolicies(f.With(candidates), checked, unread)
	if err := s.print(o, report, func() []string { return report.FindingLines(s.look(o), len(candidates)) }); err != nil {
		return err
	}
	if bad := report.Bad(); bad > 0 {
		return errors.New(message.Count(bad, "problem", "problems"))
	}
	return nil
}

// refused validates a policy as it was written with a server-side dry run. It returns the API
// server's error, or "" if the policy is accepted.
func refused(ctx context.Context, s *Session, p *unstructured.Unstructured) (string, error) {
	c, err := s.client()
	if err != nil {
		return "", err
	}
	c = client.WithFieldValidation(client.NewDryRunClient(client.WithFieldOwner(c, fieldOwner)), metav1.FieldValidationStrict)
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(p.GroupVersionKind())
	switch err = c.Get(ctx, client.ObjectKeyFromObject(p), stored); {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, p.DeepCopy())
	case err == nil:
		delete(stored.Object, "spec")
		if spec, found := p.Object["spec"]; found {
			stored.Object["spec"] = spec
		}
		err = c.Update(ctx, stored)
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return err.Error(), nil
	}
	return "", err
}

// readPolicies reads the policies of a manifest and skips other kinds. It also returns each policy
// as it was written. Unknown fields are an error.
func readPolicies(ctx context.Context, s *Session, file string) ([]v1alpha1.RebootPolicy, []*unstructured.Unstructured, error) {
	var manifest []byte
	var err error
	if file == "-" {
		manifest, err = readAll(ctx, s.In)
	} else {
		manifest, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, nil, err // the error names the file
	}
	var policies []v1alpha1.RebootPolicy
	var written []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if kind := object.GroupVersionKind(); kind.Kind != "RebootPolicy" || kind.Group != v1alpha1.GroupVersion.Group {
			continue
		}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RebootPolicy"))
		var p v1alpha1.RebootPolicy
		if err := yaml.UnmarshalStrict(document, &p); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if p.Name == "" {
			return nil, nil, fmt.Errorf("reading %s: a RebootPolicy has no metadata.name", file)
		}
		if slices.ContainsFunc(policies, func(other v1alpha1.RebootPolicy) bool { return other.Name == p.Name }) {
			return nil, nil, fmt.Errorf("reading %s: it contains policy %s twice", file, p.Name)
		}
		policies, written = append(policies, p), append(written, object)
	}
	if len(policies) == 0 {
		return nil, nil, fmt.Errorf("%s does not contain a RebootPolicy", file)
	}
	return policies, written, nil
}
