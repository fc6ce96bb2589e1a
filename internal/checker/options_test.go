package checker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/test/builders"
)

func TestWhatTheConfigurationSays(t *testing.T) {
	prod := labels.SelectorFromSet(labels.Set{"env": "prod"})
	floor := func(strategy string) Options {
		return Options{Floors: []Floor{{Namespaces: prod, Strategy: strategy, Enforce: true}}}
	}
	cases := map[string]struct {
		options  Options
		strategy string // of the spec
		annotate map[string]string
		labels   map[string]any
		want     Class
		mode     string
		in       string
	}{
		"nothing said":                     {want: Tolerated, in: "OnReplenish"},
		"a stricter default":               {options: Options{Strategy: "Recreate", Mode: "enforce"}, want: Stale, mode: "enforce", in: "Recreate"},
		"a default that rolls":             {options: Options{Strategy: "RollingUpdate"}, want: Stale, in: "RollingUpdate"},
		"a default, and the pool's own":    {options: Options{Strategy: "Recreate", Mode: "enforce"}, strategy: "OnReplenish", labels: map[string]any{keyEnforcement: "audit"}, want: Tolerated, mode: "audit", in: "OnReplenish"},
		"a floor":                          {options: floor("Recreate"), labels: map[string]any{"env": "prod", keyEnforcement: "audit"}, strategy: "OnReplenish", want: Stale, mode: "enforce", in: "Recreate"},
		"a floor of others":                {options: floor("Recreate"), labels: map[string]any{"env": "test"}, want: Tolerated, in: "OnReplenish"},
		"a floor below the pool's own":     {options: floor("RollingUpdate"), labels: map[string]any{"env": "prod"}, strategy: "Recreate", want: Stale, mode: "enforce", in: "Recreate"},
		"a floor that rolls":               {options: floor("RollingUpdate"), labels: map[string]any{"env": "prod"}, want: Stale, mode: "enforce", in: "RollingUpdate"},
		"a floor that rolls, and admits":   {options: floor("RollingUpdate"), labels: map[string]any{"env": "prod"}, annotate: map[string]string{keyAdmit: "any"}, want: Tolerated, mode: "enforce", in: "RollingUpdate"},
		"a floor for the platform's own":   {options: floor("Recreate"), labels: map[string]any{"env": "prod"}, strategy: "Canary", want: Stale, mode: "enforce", in: "Recreate"},
		"rolling is no strategy of a spec": {strategy: "RollingUpdate", want: Tolerated, in: "RollingUpdate (not known)"},
		"a pool that enforces for itself":  {annotate: map[string]string{keyEnforcement: "enforce"}, want: Tolerated, mode: "enforce", in: "OnReplenish"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := unsyncedRecording(t)
			x.h = NewHistory(tc.options)
			x.sync()
			namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns, "labels": tc.labels}}}
			x.add(plain{namespace})
			s := castScene(x, builders.V1Beta1, tc.strategy)
			pool := builders.PoolFrom(s.pool)
			for key, value := range tc.annotate {
				pool.Annotation(key, value)
			}
			s.pool = s.mod(pool)
			s.update("sandbox:v2")
			serve(s)
			b := s.h.Judge().Binds[0]
			if b.Class != tc.want || b.Mode != tc.mode || b.Strategy != tc.in {
				t.Errorf("%s, mode %q, strategy %q; want %s, %q, %q", b.Class, b.Mode, b.Strategy, tc.want, tc.mode, tc.in)
			}
		})
	}
}

func TestNodesThatGo(t *testing.T) {
	taint := func(effect string) map[string]any {
		return map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "sandboxes", "value": "only", "effect": effect}}}}
	}
	ready := func(status string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}}
	}
	tolerate := func(seconds any) []any {
		t := map[string]any{"key": "sandboxes", "operator": "Exists", "effect": "NoExecute"}
		if seconds != nil {
			t["tolerationSeconds"] = seconds
		}
		return []any{t}
	}
	cases := map[string]struct {
		node        map[string]any
		tolerations []any
		gone        bool
		want        Class
	}{
		"it stays":                    {node: ready("True"), want: Fresh},
		"a taint that evicts":         {node: taint("NoExecute"), want: DeadMember},
		"it is tolerated for ever":    {node: taint("NoExecute"), tolerations: tolerate(nil), want: Fresh},
		"it is tolerated for a while": {node: taint("NoExecute"), tolerations: tolerate(int64(30)), want: DeadMember},
		"a taint that only schedules": {node: taint("NoSchedule"), want: Fresh},
		"it is not ready":             {node: ready("Unknown"), want: DeadMember},
		"it is gone":                  {node: ready("True"), gone: true, want: DeadMember},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "Recreate")
			s.node(tc.node)
			if tc.tolerations != nil {
				s.pod = s.mod(builders.PodFrom(s.pod).Set(tc.tolerations, "spec", "tolerations"))
			}
			if tc.gone {
				s.del(makeNode("node", tc.node))
			}
			serve(s)
			if b := s.h.Judge().Binds[0]; b.Class != tc.want {
				t.Errorf("%s, want %s", b, tc.want)
			}
		})
	}
}

// What is over is forgotten, and what may still turn out to be a bind is not.
func TestPruneOfOwnersThatAreNoClaims(t *testing.T) {
	s := newScene(t, "Recreate")
	for range 3 {
		serve(s)
		s.del(builders.ClaimFrom(s.claim))
		s.del(builders.SandboxFrom(s.member))
		s.del(builders.PodFrom(s.pod))
		s.birth("python-next")
	}
	s.podPhase(corev1.PodRunning)
	s.progress()
	s.h.Prune(s.at())
	if got := len(s.h.binds); got > 1 {
		t.Errorf("%d owners are kept, want none but those of what lives", got)
	}
	if got := len(s.h.podsOfName); got != 1 {
		t.Errorf("Pods of %d names are kept, want those of the one that lives", got)
	}
}
