package checker

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/builders"
)

type story struct {
	strategy string
	tell     func(s *scene)
	want     []string
}

func run(t *testing.T, cases map[string]story) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.strategy)
			tc.tell(s)
			if diff := cmp.Diff(tc.want, s.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, s.dump())
			}
			orderOfArrival(t, s)
		})
	}
}

// orderOfArrival feeds the same events as five watches may deliver them: in order within a resource, in any order across.
func orderOfArrival(t *testing.T, s *scene) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	want := s.h.Judge()
	for range 5 {
		queues := map[Resource][]Event{}
		for _, e := range s.events {
			e, err := e.normalized()
			if err != nil {
				t.Fatalf("normalize event: %v", err)
			}
			queues[e.Resource] = append(queues[e.Resource], e)
		}
		h := NewHistory(Options{})
		for len(queues) > 0 {
			keys := sortedKeys(queues)
			key := keys[random.IntN(len(keys))]
			if err := h.Add(queues[key][0]); err != nil {
				t.Fatalf("add event: %v", err)
			}
			if queues[key] = queues[key][1:]; len(queues[key]) == 0 {
				delete(queues, key)
			}
		}
		got := h.Judge()
		if diff := cmp.Diff(want.Namespaces, got.Namespaces, ignoreLatencies); diff != "" {
			t.Errorf("summaries depend on the order of arrival (-want,+got):\n%s", diff)
		}
		if diff := cmp.Diff(want.Findings, got.Findings); diff != "" {
			t.Errorf("findings depend on the order of arrival (-want,+got):\n%s", diff)
		}
	}
}

func TestOrderOfUpdateAndBind(t *testing.T) {
	run(t, map[string]story{
		"no update": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
		}},
		"update before the claim": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.create("c1")
			s.serve()
		}},
		"update between the claim and its choice": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.create("c1")
			s.update("sandbox:v2")
			s.serve()
		}},
		"update between the choice and the bind": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.update("sandbox:v2")
			s.bind()
		}},
		"update after the choice, but the member was written once more before the bind": {strategy: "Recreate",
			want: []string{"c1: Stale"}, tell: func(s *scene) {
				s.create("c1")
				s.choose()
				s.update("sandbox:v2")
				s.member = s.mod(builders.SandboxFrom(s.member).Annotation("x", "y"))
				s.bind()
			}},
		"two updates: the first one made it stale": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.create("c1")
			s.update("sandbox:v2")
			s.choose()
			s.update("sandbox:v3")
			s.bind()
		}},
		"update right after the bind": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.update("sandbox:v2")
		}},
		"the first choice counts, not a repeated one": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.update("sandbox:v2")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Annotation("x", "y"))
			s.bind()
		}},
		"A, B, A: members of A are fresh again": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.update("sandbox:v1")
			s.create("c1")
			s.serve()
		}},
		"A, B, A: members of B are stale": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.birth("python-m2")
			s.update("sandbox:v1")
			s.create("c1")
			s.serve()
		}},
		"A, B, A, B around a bind: the last update counts": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.update("sandbox:v1")
			s.create("c1")
			s.choose()
			s.update("sandbox:v2")
			s.bind()
		}},
		"an update of pod metadata makes nothing stale": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Set("b", "spec", "podTemplate", "metadata", "labels", "a"))
			s.create("c1")
			s.serve()
		}},
		"an update that changes nothing after one that did": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.update("sandbox:v2")
			s.template = s.mod(builders.TemplateFrom(s.template).Annotation("x", "y"))
			s.bind()
		}},
		"networkPolicyManagement changes the injected DNS": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Unmanaged())
			s.create("c1")
			s.serve()
		}},
	})
}

func TestTemplatesAndPoolsThatChange(t *testing.T) {
	run(t, map[string]story{
		"a removed field": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).RuntimeClass("gvisor"))
			s.birth("python-m2")
			s.template = s.mod(builders.TemplateFrom(s.template).RuntimeClass(""))
			s.create("c1")
			s.serve()
		}},
		"an unknown field counts": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).PodSpec("x", "fieldOfTomorrow"))
			s.create("c1")
			s.serve()
		}},
		"volumeClaimTemplates": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).VolumeClaim("data", "1Gi"))
			s.create("c1")
			s.serve()
		}},
		"service": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Service(true))
			s.create("c1")
			s.serve()
		}},
		"template deleted, nothing newer in force": {strategy: "Recreate", want: []string{"c1: NotYet"}, tell: func(s *scene) {
			s.template = s.del(builders.TemplateFrom(s.template))
			s.create("c1")
			s.serve()
		}},
		"template deleted and recreated with the same content": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.del(builders.TemplateFrom(s.template))
			s.template = s.add(builders.TemplateFrom(s.template).UID("second"))
			s.create("c1")
			s.serve()
		}},
		"template deleted and recreated with another content": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.del(builders.TemplateFrom(s.template))
			s.template = s.add(builders.TemplateFrom(s.template).UID("second").Image("sandbox:v2"))
			s.create("c1")
			s.serve()
		}},
		"claim made while the template was away": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.del(builders.TemplateFrom(s.template))
			s.create("c1")
			s.choose()
			s.template = s.add(builders.TemplateFrom(s.template).UID("second").Image("sandbox:v2"))
			s.bind()
		}},
		"pool switched to another template": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").Image("node:v1"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.create("c1")
			s.serve()
		}},
		"pool switched while the bind was under way": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").Image("node:v1"))
			s.create("c1")
			s.choose()
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.bind()
		}},
		"pool switched to a template of the same content": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			s.create("c1")
			s.serve()
		}},
		"pool switched to a template that does not exist": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("nowhere"))
			s.create("c1")
			s.serve()
		}},
		"a template of that name in another namespace is another template": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.MakeTemplate("elsewhere", "python").Image("sandbox:v2"))
			s.create("c1")
			s.serve()
		}},
		"content that no revision has": {strategy: "Recreate", want: []string{"c1: Stale NotYet"}, tell: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-odd").Image("odd:v1"))
			s.create("c1")
			s.serve()
		}},
	})
}

func TestStrategies(t *testing.T) {
	stale := func(prepare func(p *builders.Pool)) func(s *scene) {
		return func(s *scene) {
			p := builders.PoolFrom(s.pool)
			prepare(p)
			s.pool = s.mod(p)
			s.update("sandbox:v2")
			s.create("c1")
			s.serve()
		}
	}
	as := func(strategy string) func(p *builders.Pool) {
		return func(p *builders.Pool) { p.Annotation("freshbind.dev/rollout-strategy", strategy) }
	}
	run(t, map[string]story{
		"nothing said":                        {strategy: "", want: []string{"c1: Tolerated"}, tell: stale(func(*builders.Pool) {})},
		"OnReplenish in the spec":             {strategy: "OnReplenish", want: []string{"c1: Tolerated"}, tell: stale(func(*builders.Pool) {})},
		"Recreate by annotation":              {strategy: "OnReplenish", want: []string{"c1: Stale"}, tell: stale(as("Recreate"))},
		"OnReplenish by annotation":           {strategy: "Recreate", want: []string{"c1: Tolerated"}, tell: stale(as("OnReplenish"))},
		"RollingUpdate admits fresh only":     {strategy: "", want: []string{"c1: Stale"}, tell: stale(as("RollingUpdate"))},
		"an annotation that means nothing":    {strategy: "", want: []string{"c1: Stale"}, tell: stale(as("Sometimes"))},
		"an unknown strategy of the platform": {strategy: "Canary", want: []string{"c1: Tolerated"}, tell: stale(func(*builders.Pool) {})},
		"RollingUpdate that admits any": {strategy: "", want: []string{"c1: Tolerated"}, tell: stale(func(p *builders.Pool) {
			as("RollingUpdate")(p)
			p.Annotation("freshbind.dev/admit", "any")
		})},
		"RollingUpdate with an unreadable admit": {strategy: "", want: []string{"c1: Stale"}, tell: stale(func(p *builders.Pool) {
			as("RollingUpdate")(p)
			p.Annotation("freshbind.dev/admit", "perhaps")
		})},
		"a race that the pool tolerates": {strategy: "", want: []string{"c1: Tolerated"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.update("sandbox:v2")
			s.bind()
		}},
		"strategy tightened while the bind was under way": {strategy: "", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.create("c1")
			s.choose()
			s.pool = s.mod(builders.PoolFrom(s.pool).Strategy("Recreate"))
			s.bind()
		}},
		"strategy tightened before": {strategy: "", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.pool = s.mod(builders.PoolFrom(s.pool).Strategy("Recreate"))
			s.create("c1")
			s.serve()
		}},
	})
}
