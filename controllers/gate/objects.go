package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// page is the number of objects that are in memory at once, and mostObjects the number that a
// selector may match.
const page, mostObjects = 50, 1000

// Objects reads objects live and evaluates expressions on them. It does not keep the objects.
type Objects struct {
	discovery discovery.ServerResourcesInterfaceWithContext
	objects   dynamic.Interface
}

// NewObjects returns Objects with the permissions of a client's configuration.
func NewObjects(config *rest.Config) (*Objects, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limitedTransport{next, errTooLarge} })
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for gates: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for gates: %w", err)
	}
	return &Objects{resources, objects}, nil
}

var errTooLarge = errors.New("the answer is longer than 4 MiB: select smaller objects")

// Ask checks the objects of the gate. Every failure becomes an answer.
func (o *Objects) Ask(ctx context.Context, gate v1alpha1.ObjectGate) Answer {
	e, err := compile(gate.Expression)
	if err != nil {
		return unreachable("the expression does not compile: " + err.Error())
	}
	a, err := o.ask(ctx, gate, e)
	if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return unreachable(fmt.Sprintf("reading %s: no answer within %s", title(gate), timeout))
	}
	if err != nil {
		return unreachable(err.Error())
	}
	return a
}

func (o *Objects) ask(ctx context.Context, gate v1alpha1.ObjectGate, e *expression) (Answer, error) {
	resource, err := o.resource(ctx, gate)
	if err != nil {
		return Answer{}, err
	}
	var notReady []string
	count, token := 0, ""
	for {
		read, next, err := o.read(ctx, gate, resource, token)
		if err != nil {
			return Answer{}, failure(gate, resource, err)
		}
		if count += len(read); count > mostObjects {
			return Answer{}, fmt.Errorf("the selector matches more than %d of %s: narrow it", mostObjects, title(gate))
		}
		for i := range read {
			switch ready, err := e.eval(ctx, read[i].Object); {
			case err != nil:
				return Answer{}, fmt.Errorf("%s: %w", titleOf(&read[i]), err)
			case !ready:
				notReady = append(notReady, titleOf(&read[i]))
			}
		}
		if token = next; token == "" {
			return judged(gate, count, notReady), nil
		}
	}
}

// judged returns the answer once all objects have been read. Without any object the gate is not
// clear.
func judged(gate v1alpha1.ObjectGate, count int, notReady []string) Answer {
	switch {
	case count == 0:
		return unreachable(fmt.Sprintf("no object matches %s, but a gate needs at least one", title(gate)))
	case len(notReady) == 0:
		return Answer{State: v1alpha1.GateClear}
	}
	slices.Sort(notReady)
	return Answer{State: v1alpha1.GateNotReady, Message: notReady[0] + ": the expression is false", blocking: notReady}
}

// read reads the one object, or the next page of the selected ones.
func (o *Objects) read(ctx context.Context, gate v1alpha1.ObjectGate, resource *metav1.APIResource, token string) ([]unstructured.Unstructured, string, error) {
	version, err := schema.ParseGroupVersion(gate.APIVersion)
	if err != nil {
		return nil, "", err
	}
	objects := o.objects.Resource(version.WithResource(resource.Name))
	if gate.Selector == nil {
		object, err := objects.Namespace(gate.Namespace).Get(ctx, gate.Name, metav1.GetOptions{})
		if err != nil {
			return nil, "", err
		}
		return []unstructured.Unstructured{*object}, "", nil
	}
	selector, err := gate.Selector.Selector()
	if err != nil {
		return nil, "", err
	}
	list, err := objects.Namespace(gate.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: page, Continue: token})
	if err != nil {
		return nil, "", err
	}
	return list.Items, list.GetContinue(), nil
}

// resource returns the API resource of the kind. It is looked up each time, because kinds may be
// added and removed.
func (o *Objects) resource(ctx context.Context, gate v1alpha1.ObjectGate) (*metav1.APIResource, error) {
	list, err := o.discovery.ServerResourcesForGroupVersionWithContext(ctx, gate.APIVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("looking for %s of %s: %w", gate.Kind, gate.APIVersion, err)
	}
	if list != nil {
		for i := range list.APIResources {
			if r := &list.APIResources[i]; r.Kind == gate.Kind && !strings.Contains(r.Name, "/") {
				return r, scope(gate, r)
			}
		}
	}
	return nil, fmt.Errorf("the API server does not know kind %s of %s", gate.Kind, gate.APIVersion)
}

func scope(gate v1alpha1.ObjectGate, r *metav1.APIResource) error {
	switch {
	case gate.Namespace != "" && !r.Namespaced:
		return fmt.Errorf("%s of %s is not namespaced: remove namespace", gate.Kind, gate.APIVersion)
	case gate.Namespace == "" && gate.Name != "" && r.Namespaced:
		return fmt.Errorf("%s of %s is namespaced: set namespace", gate.Kind, gate.APIVersion)
	}
	return nil
}

// failure says why objects could not be read, and what to do about it.
func failure(gate v1alpha1.ObjectGate, resource *metav1.APIResource, err error) error {
	verb := "get"
	if gate.Selector != nil {
		verb = "list"
	}
	group, _, found := strings.Cut(gate.APIVersion, "/")
	if !found {
		group = `""`
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("reading %s is forbidden: give a ClusterRole with verb %s, resource %s and API group %s the label %s=true",
			title(gate), verb, resource.Name, group, v1alpha1.LabelAggregateToManager)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist", title(gate))
	}
	return fmt.Errorf("reading %s: %w", title(gate), err)
}

// title names the object of a gate, or its objects.
func title(gate v1alpha1.ObjectGate) string {
	name := gate.Name
	if gate.Selector != nil {
		name = "*"
	}
	return named(gate.Kind, gate.Namespace, name)
}

func titleOf(object *unstructured.Unstructured) string {
	return named(object.GetKind(), object.GetNamespace(), object.GetName())
}

func named(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

const (
	// variable is the name of the object in an expression.
	variable = "object"
	// budget is the total cost limit for the evaluations of one query, in the units of Kubernetes.
	// It is about a second. A single evaluation may cost a tenth, which is the limit of the
	// environment.
	budget = celconfig.RuntimeCELCostBudget
)

// celEnvironment has the functions of Kubernetes validation rules. It is created for the first
// expression, because it uses much memory.
var celEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: environment.DefaultCompatibilityVersion(),
		EnvOptions:        []cel.EnvOption{cel.Variable(variable, cel.DynType)},
		ProgramOptions:    []cel.ProgramOption{cel.InterruptCheckFrequency(celconfig.CheckFrequency)},
	})
	if err != nil {
		return nil, err
	}
	return set.NewExpressionsEnv(), nil
})

// expression is a compiled expression with its remaining cost limit.
type expression struct {
	program   cel.Program
	remaining uint64
}

// compile compiles an expression. Its error is one sentence with the position.
func compile(source string) (*expression, error) {
	env, err := celEnvironment()
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		text, _, _ := strings.Cut(strings.TrimSuffix(first.Message, " (in container '')"), "\n")
		return nil, fmt.Errorf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, text)
	}
	if kind := ast.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value has type %s, and must be true or false", kind)
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	return &expression{program, budget}, nil
}

// eval reports whether the expression is true for an object.
func (e *expression) eval(ctx context.Context, object map[string]any) (bool, error) {
	value, details, err := e.program.ContextEval(ctx, map[string]any{variable: object})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, fmt.Errorf("the expression fails: %w", err)
	}
	if details != nil && details.ActualCost() != nil {
		cost := *details.ActualCost()
		if cost > e.remaining {
			return false, errors.New("the expression costs too much for so many objects: write a shorter one, or select fewer")
		}
		e.remaining -= cost
	}
	result, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the value of the expression has type %s, and must be true or false", value.Type().TypeName())
	}
	return bool(result), nil
}

// Invalid says which expression of a policy does not compile, and where. It is empty if all do.
func (e *Evaluator) Invalid(policy *v1alpha1.RebootPolicySpec) string {
	if e == nil {
		return ""
	}
	for i, g := range policy.ObjectGates() {
		if err := e.verdict(g.Expression); err != nil {
			return fmt.Sprintf("spec.gates.objects[%d].expression does not compile: %v", i, err)
		}
	}
	return ""
}

// verdict returns the compile error of an expression, or nil. It is cached, because each pass needs
// it.
func (e *Evaluator) verdict(source string) error {
	if known, ok := e.verdicts.Get(source); ok {
		err, _ := known.(error)
		return err
	}
	_, err := compile(source)
	e.verdicts.Add(source, err)
	return err
}
