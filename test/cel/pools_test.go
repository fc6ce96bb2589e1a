package cel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

// What Freshbind says on a pool is an input of verdicts, and of the next leader.
func TestWhatFreshbindSaysOfPoolsIsItsOwn(t *testing.T) {
	says := func(annotations ...string) *builders.Pool {
		b := builders.PoolFrom(pool)
		for i := 0; i < len(annotations); i += 2 {
			b.Annotation(annotations[i], annotations[i+1])
		}
		return b
	}
	refused := []string{webhooks.PoolsPolicy}
	type names = []string
	cases := map[string]struct {
		write
		want names
	}{
		"nothing, then any":               {write{says().Obj(), says(settings.AdmitKey, "any").Obj(), "tenant"}, refused},
		"fresh, then any":                 {write{says(settings.AdmitKey, "fresh").Obj(), says(settings.AdmitKey, "any").Obj(), "tenant"}, refused},
		"any, by Freshbind":               {write{says().Obj(), says(settings.AdmitKey, "any").Obj(), self}, nil},
		"attribution suspended":           {write{says().Obj(), says(settings.AttributionKey, "v1-a").Obj(), "tenant"}, refused},
		"attribution suspended, empty":    {write{says().Obj(), says(settings.AttributionKey, "").Obj(), "tenant"}, refused},
		"another status":                  {write{says(settings.RolloutStatusKey, "{}").Obj(), says(settings.RolloutStatusKey, `{"replicas":1}`).Obj(), "tenant"}, refused},
		"another state":                   {write{says(settings.RolloutStateKey, "Failed").Obj(), says(settings.RolloutStateKey, "Complete").Obj(), "tenant"}, refused},
		"another reason":                  {write{says().Obj(), says(settings.RolloutReasonKey, "Queued").Obj(), "tenant"}, refused},
		"another revision":                {write{says().Obj(), says(settings.RolloutRevisionKey, "v1-a").Obj(), "tenant"}, refused},
		"as it was, and an input":         {write{says(settings.AdmitKey, "any", settings.RolloutStatusKey, "{}").Obj(), says(settings.AdmitKey, "any", settings.RolloutStatusKey, "{}", settings.PausedKey, "true").Obj(), "tenant"}, nil},
		"left out":                        {write{says(settings.AdmitKey, "any", settings.AttributionKey, "v1-a", settings.RolloutStatusKey, "{}").Obj(), says().Obj(), "tenant"}, nil},
		"inputs":                          {write{says().Obj(), says(settings.StrategyKey, "Recreate").Obj(), "tenant"}, nil},
		"no annotations":                  {write{builders.PoolFrom(pool).Unset("metadata", "annotations").Obj(), builders.PoolFrom(pool).Unset("metadata", "annotations").Obj(), "tenant"}, nil},
		"created":                         {write{nil, says().Obj(), "tenant"}, nil},
		"created with inputs":             {write{nil, says(settings.StrategyKey, "Recreate").Obj(), "tenant"}, nil},
		"from a backup":                   {write{nil, says(settings.AdmitKey, "fresh", settings.RolloutStatusKey, "{}", settings.RolloutStateKey, "Complete").Obj(), "tenant"}, nil},
		"created, any":                    {write{nil, says(settings.AdmitKey, "any").Obj(), "tenant"}, refused},
		"created, attribution suspended":  {write{nil, says(settings.AttributionKey, "v1-a").Obj(), "tenant"}, refused},
		"created by Freshbind, suspended": {write{nil, says(settings.AttributionKey, "v1-a").Obj(), self}, nil},
	}
	for suffix, of := range map[string]platform.Admission{"": agentsandbox.Admission(), kruise.Suffix: kruise.Admission()} {
		r := renderOf(t, of)
		for name, tc := range cases {
			t.Run(name+suffix, func(t *testing.T) {
				var want names
				for _, policy := range tc.want {
					want = append(want, policy+suffix)
				}
				if diff := cmp.Diff(want, refusing(t, r.poolPolicies, tc.write)); diff != "" {
					t.Errorf("policies (-want,+got):\n%s", diff)
				}
			})
		}
	}
}
