package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// gitopsBlock returns the fenced code block of docs/gitops.md in a language.
func gitopsBlock(t *testing.T, language string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(doc), "```"+language+"\n")
	code, _, closed := strings.Cut(code, "```")
	if !found || !closed {
		t.Fatalf("docs/gitops.md has no block of %s", language)
	}
	return code
}

// gitopsPools are the annotations of pools, and what each tool is to make of them.
var gitopsPools = map[string]struct {
	annotations map[string]string
	argo, flux  string
}{
	"not enforced":      {nil, "Healthy", "current"},
	"other annotations": {map[string]string{"team": "a"}, "Healthy", "current"},
	"complete":          {rolloutOutcome("Complete", "MembersUpToDate"), "Healthy", "current"},
	"suspended":         {rolloutOutcome("Complete", "AttributionSuspended"), "Healthy", "current"},
	"progressing":       {rolloutOutcome("Progressing", "MembersUpdating"), "Progressing", "inProgress"},
	"stale by strategy": {rolloutOutcome("Progressing", "StaleByStrategy"), "Healthy", "current"},
	"failed":            {rolloutOutcome("Failed", "ProgressDeadlineExceeded"), "Degraded", "failed"},
	"paused":            {rolloutOutcome("Paused", "RolloutPaused"), "Suspended", "inProgress"},
}

func rolloutOutcome(state, reason string) map[string]string {
	return map[string]string{"freshbind.dev/rollout-state": state, "freshbind.dev/rollout-reason": reason}
}

// The health checks of docs/gitops.md, as Argo CD evaluates them.
func TestArgoCDHealth(t *testing.T) {
	script := gitopsBlock(t, "lua")
	for name, tc := range gitopsPools {
		t.Run(name, func(t *testing.T) {
			l := lua.NewState()
			defer l.Close()
			metadata := l.NewTable()
			if tc.annotations != nil {
				annotations := l.NewTable()
				for key, value := range tc.annotations {
					annotations.RawSetString(key, lua.LString(value))
				}
				metadata.RawSetString("annotations", annotations)
			}
			obj := l.NewTable()
			obj.RawSetString("metadata", metadata)
			l.SetGlobal("obj", obj)
			if err := l.DoString(script); err != nil {
				t.Fatal(err)
			}
			health, ok := l.Get(-1).(*lua.LTable)
			if !ok {
				t.Fatalf("the script returns %s, want a table", l.Get(-1).Type())
			}
			if got := health.RawGetString("status").String(); got != tc.argo {
				t.Errorf("status %s, want %s", got, tc.argo)
			}
			if health.RawGetString("message").Type() != lua.LTString {
				t.Error("no message")
			}
		})
	}
}

// And as Flux does.
func TestFluxHealth(t *testing.T) {
	var checks []map[string]string
	if err := yaml.Unmarshal([]byte(gitopsBlock(t, "yaml")), &checks); err != nil {
		t.Fatal(err)
	}
	// Flux has each top-level field of the object as a variable.
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range gitopsPools {
		t.Run(name, func(t *testing.T) {
			metadata := map[string]any{"name": "python"}
			if tc.annotations != nil {
				metadata["annotations"] = tc.annotations
			}
			for _, expression := range []string{"current", "inProgress", "failed"} {
				ast, issues := env.Compile(checks[0][expression])
				if issues.Err() != nil {
					t.Fatal(issues.Err())
				}
				program, err := env.Program(ast)
				if err != nil {
					t.Fatal(err)
				}
				value, _, err := program.Eval(map[string]any{"metadata": metadata})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := value.Value(), expression == tc.flux; got != want {
					t.Errorf("%s is %v, want %v", expression, got, want)
				}
			}
		})
	}
}
