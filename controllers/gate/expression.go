package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// variable is what an expression calls the object.
	variable = "object"
	// budget is what the evaluations of one question may cost together, in the units of Kubernetes: about a second. One alone may
	// cost a tenth, which is the limit of the environment.
	budget = celconfig.RuntimeCELCostBudget
	// verdictsKept is how many expressions are remembered to compile or not.
	verdictsKept = 256
)

// celEnvironment has the functions of validation rules of Kubernetes. It takes memory, and is made for the first expression.
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

// expression is one that compiles. It holds what its evaluations may still cost.
type expression struct {
	program cel.Program
	left    uint64
}

// compile states in one sentence, with the place, why an expression does not compile.
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
	if is := ast.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives a value of type %s, and must give true or false", is)
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	return &expression{program, budget}, nil
}

// eval reports whether the expression is true of an object.
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
		if cost > e.left {
			return false, errors.New("the expression costs too much for so many objects: write a shorter one, or select fewer")
		}
		e.left -= cost
	}
	result, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the expression gives a value of type %s, and must give true or false", value.Type().TypeName())
	}
	return bool(result), nil
}

// verdicts remember which expressions compile: each pass asks. They may be used from any goroutine.
type verdicts struct {
	mu    sync.Mutex
	known map[string]error
}

func (v *verdicts) of(source string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err, known := v.known[source]; known {
		return err
	}
	if v.known == nil || len(v.known) >= verdictsKept {
		v.known = map[string]error{}
	}
	_, err := compile(source)
	v.known[source] = err
	return err
}

// Invalid states which expression of a policy does not compile, and where. Empty: all do.
func (e *Evaluator) Invalid(policy *v1alpha1.RebootPolicySpec) string {
	if e == nil {
		return ""
	}
	for i, g := range policy.ObjectGates() {
		if err := e.verdicts.of(g.Expression); err != nil {
			return fmt.Sprintf("spec.gates.objects[%d].expression does not compile: %v", i, err)
		}
	}
	return ""
}
