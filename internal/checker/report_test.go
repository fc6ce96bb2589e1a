package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/freshbind/freshbind/test/builders"
)

var ignoreLatencies = cmpopts.IgnoreUnexported(Summary{})

// busy tells a history in which everything that is counted happens once or more.
func busy(s *scene) {
	s.create("warm")
	s.serve()
	s.birth("python-m2")
	s.update("sandbox:v2")
	s.create("stale")
	s.serve()
	s.create("unready")
	s.add(builders.MakeColdStart(s.claim, s.template))
	old := builders.TemplateFrom(s.template).Image("sandbox:v1").Obj()
	late := s.add(builders.MakeMember(s.pool, old).Name("python-late"))
	hidden := s.mod(builders.SandboxFrom(late).NoLabel(builders.LabelTemplateRef))
	s.del(builders.SandboxFrom(hidden))
}

func TestSummary(t *testing.T) {
	s := newScene(t, "Recreate")
	busy(s)
	want := Summary{
		Namespace: ns, Claims: 3, Warm: 2, Cold: 1, Ready: 2,
		Classes:  map[Class]int{Fresh: 2, Stale: 1},
		ReadyP50: Seconds(300 * time.Millisecond), ReadyP99: Seconds(300 * time.Millisecond),
		Births: 3, StaleBirths: 1, MemberDeletes: 1, Hidden: 1,
	}
	if diff := cmp.Diff(want, s.h.Judge().Namespace(ns), ignoreLatencies); diff != "" {
		t.Errorf("summary (-want,+got):\n%s", diff)
	}
}

func TestSummaryMode(t *testing.T) {
	s := newScene(t, "Recreate")
	namespace := func(mode string) stored {
		b := builders.MakeTemplate("", ns)
		u := b.Obj()
		u.SetAPIVersion("v1")
		u.SetKind("Namespace")
		return builders.TemplateFrom(u).Label("freshbind.dev/enforcement", mode)
	}
	s.add(namespace("audit"))
	s.create("c1")
	s.serve()
	s.pool = s.mod(builders.PoolFrom(s.pool).Annotation("freshbind.dev/enforcement", "enforce"))
	s.birth("python-m2")
	s.create("c2")
	s.serve()
	report := s.h.Judge()
	got := []string{report.Namespace(ns).Mode, report.Binds[0].Mode, report.Binds[1].Mode}
	if diff := cmp.Diff([]string{"audit", "audit", "enforce"}, got); diff != "" {
		t.Errorf("modes of namespace, first and second bind (-want,+got):\n%s", diff)
	}
}

func TestClaimRecord(t *testing.T) {
	s := newScene(t, "Recreate")
	s.create("c1")
	created, createdSeen := s.at(), s.now
	s.choose()
	s.bind()
	bound, boundSeen := s.at(), s.now
	s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(true))
	want := []ClaimRecord{{
		Namespace: ns, Claim: Ref{"c1", s.claim.GetUID()}, CreatedRV: created, BoundRV: bound, ReadyRV: s.at(),
		CreatedSeen: createdSeen, BoundSeen: boundSeen, ReadySeen: s.now, Warm: true,
	}}
	if diff := cmp.Diff(want, s.h.Judge().Claims); diff != "" {
		t.Errorf("claims (-want,+got):\n%s", diff)
	}
}

func TestFindingInWords(t *testing.T) {
	s := newScene(t, "Recreate")
	s.update("sandbox:v2")
	updated := s.at()
	s.create("c1")
	s.serve()
	b := s.h.Judge().Findings[0]
	if b.StaleSince != updated || time.Duration(b.StaleFor) != 300*time.Millisecond {
		t.Errorf("stale since rv %s for %v, want rv %s for 300ms", b.StaleSince, time.Duration(b.StaleFor), updated)
	}
	if b.Found.Template != "python" || b.Expected.RV != updated || b.Found.Digest == b.Expected.Digest {
		t.Errorf("found %+v, expected %+v: want two revisions of python, the second at rv %s", b.Found, b.Expected, updated)
	}
	want := fmt.Sprintf("STALE         default/c1 -> python-m1 (warm, pool python): runs python@101 (%s), in force was python@106 (%s): "+
		"containers[0].image sandbox:v1 -> sandbox:v2 (updated at rv 106, bind admitted after rv 108)", b.Found.Digest, b.Expected.Digest)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("line (-want,+got):\n%s", diff)
	}
}

func TestContentOfAnotherTemplateIsNamed(t *testing.T) {
	s := newScene(t, "Recreate")
	node := s.add(builders.MakeTemplate(ns, "node").Image("node:v1"))
	s.member = s.add(builders.MakeMember(s.pool, node).Name("python-odd"))
	s.create("c1")
	s.serve()
	got := s.h.Judge().Findings[0].Found
	if got.Template != "node" || string(got.RV) != node.GetResourceVersion() {
		t.Errorf("found %v, want the version %s of template node", got, node.GetResourceVersion())
	}
}

func TestABindCountsOncePerClass(t *testing.T) {
	s := newScene(t, "Recreate")
	s.create("c1")
	s.serve()
	for _, name := range []string{"python-m2", "python-m3"} {
		s.birth(name)
		s.choose()
		s.bind()
	}
	report := s.h.Judge()
	if got := len(report.Binds[2].Findings); got != 2 {
		t.Fatalf("the third bind has %d findings, want one for each sandbox that the claim holds", got)
	}
	want := map[Class]int{Fresh: 1, Duplicate: 2}
	if diff := cmp.Diff(want, report.Namespace(ns).Classes); diff != "" {
		t.Errorf("classes (-want,+got):\n%s", diff)
	}
}

func TestEnvValuesStayOutOfReports(t *testing.T) {
	s := newScene(t, "Recreate")
	s.template = s.mod(builders.TemplateFrom(s.template).Env("TOKEN", "secret-one"))
	s.birth("python-m2")
	s.template = s.mod(builders.TemplateFrom(s.template).Env("TOKEN", "secret-two"))
	s.create("c1")
	s.serve()
	line := s.h.Judge().Findings[0].String()
	if strings.Contains(line, "secret") || !strings.Contains(line, "containers[0].env[0].value differs") {
		t.Errorf("the line must name the leaf and not its values: %s", line)
	}
}

func TestColdBesideReady(t *testing.T) {
	coldStart := func(s *scene) { s.add(builders.MakeColdStart(s.claim, s.template)) }
	cases := map[string]struct {
		tell func(s *scene)
		want int
	}{
		"a ready member stood there for long": {want: 1, tell: func(s *scene) {
			s.wait(time.Minute)
			s.create("c1")
			coldStart(s)
		}},
		"it was not ready for long": {tell: func(s *scene) {
			s.create("c1")
			coldStart(s)
		}},
		"it was ready for long in all, but not at a stretch": {tell: func(s *scene) {
			s.wait(time.Minute)
			s.mod(builders.SandboxFrom(s.member).Ready(false))
			s.mod(builders.SandboxFrom(s.member).Ready(true))
			s.create("c1")
			coldStart(s)
		}},
		"it was hidden": {tell: func(s *scene) {
			s.mod(builders.SandboxFrom(s.member).NoLabel(builders.LabelTemplateRef))
			s.wait(time.Minute)
			s.create("c1")
			coldStart(s)
		}},
		"it was stale": {tell: func(s *scene) {
			s.update("sandbox:v2")
			s.wait(time.Minute)
			s.create("c1")
			coldStart(s)
		}},
		"it was on its way to another claim": {tell: func(s *scene) {
			s.wait(time.Minute)
			s.create("c2")
			s.choose()
			s.create("c1")
			coldStart(s)
		}},
		"another claim got it right after": {tell: func(s *scene) {
			s.wait(time.Minute)
			s.create("c2")
			other := s.claim
			s.create("c1")
			coldStart(s)
			s.claim = other
			s.bind()
		}},
		"another claim that was served otherwise still names it": {want: 1, tell: func(s *scene) {
			s.create("c2")
			s.choose()
			coldStart(s)
			s.wait(time.Minute)
			s.create("c1")
			coldStart(s)
		}},
		"a claim with env of its own cannot be served warm": {tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.wait(time.Minute)
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "A", "1"))
			coldStart(s)
		}},
		"the member is in another namespace": {tell: func(s *scene) {
			s.add(builders.MakePool("elsewhere", "python"))
			s.template = s.add(builders.MakeTemplate("elsewhere", "python"))
			s.wait(time.Minute)
			s.claim = s.add(builders.MakeClaim("elsewhere", "c1"))
			coldStart(s)
		}},
		"the pool is gone": {tell: func(s *scene) {
			s.wait(time.Minute)
			s.create("c1")
			s.del(builders.PoolFrom(s.pool))
			coldStart(s)
		}},
		"the member is of another pool": {tell: func(s *scene) {
			s.add(builders.MakePool(ns, "other"))
			s.wait(time.Minute)
			s.claim = s.add(builders.MakeClaim(ns, "c1").Pool("other"))
			coldStart(s)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "Recreate")
			tc.tell(s)
			got := 0
			for _, sum := range s.h.Judge().Namespaces {
				got += sum.ColdBesideReady
			}
			if got != tc.want {
				t.Errorf("cold beside ready: got %d, want %d\n%s", got, tc.want, s.dump())
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	cases := map[string]struct {
		values []time.Duration
		p      int
		want   time.Duration
	}{
		"none":              {p: 50},
		"one":               {values: hundred[:1], p: 99, want: 1},
		"two, median":       {values: hundred[:2], p: 50, want: 1},
		"in any order":      {values: []time.Duration{5, 1, 4, 2, 3}, p: 50, want: 3},
		"a hundred, median": {values: hundred, p: 50, want: 50},
		"a hundred, p99":    {values: hundred, p: 99, want: 99},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Percentile(tc.values, tc.p); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Forgetting what is over changes no count and no finding.
func TestPrune(t *testing.T) {
	s := newScene(t, "Recreate")
	busy(s)
	s.create("over")
	s.birth("python-m3")
	s.serve()
	s.del(builders.SandboxFrom(s.member))
	s.del(builders.ClaimFrom(s.claim))
	s.create("outlived")
	s.birth("python-m4")
	s.serve()
	s.del(builders.ClaimFrom(s.claim))
	s.create("outliving")
	s.birth("python-m5")
	s.serve()
	s.del(builders.SandboxFrom(s.member))
	s.progress()
	before := s.h.Judge()
	s.h.Prune(s.at())
	s.next()
	s.progress()
	s.h.Prune(s.at())
	after := s.h.Judge()
	if diff := cmp.Diff(before.Namespaces, after.Namespaces, ignoreLatencies); diff != "" {
		t.Errorf("summaries (-before,+after):\n%s", diff)
	}
	if diff := cmp.Diff(before.Findings, after.Findings); diff != "" {
		t.Errorf("findings (-before,+after):\n%s", diff)
	}
	if slices.ContainsFunc(after.Claims, func(c ClaimRecord) bool { return c.Claim.Name == "over" }) {
		t.Error("the deleted claim is still kept")
	}
	if n := len(s.h.pods); n != 3 {
		t.Errorf("%d Pods are kept, want those of the 3 sandboxes that live: %v", n, s.h)
	}
}

func TestPruneKeepsWhatMayStillChange(t *testing.T) {
	s := newScene(t, "Recreate")
	s.create("over")
	s.serve()
	s.del(builders.SandboxFrom(s.member))
	s.del(builders.ClaimFrom(s.claim))
	s.h.Prune(s.at())
	if got := len(s.h.Judge().Claims); got != 1 {
		t.Errorf("%d claims are kept, want 1: the watch of templates is not there yet", got)
	}
}

func TestTake(t *testing.T) {
	s := newScene(t, "Recreate")
	s.create("c1")
	s.serve()
	if got := len(s.h.Take(s.now.Add(-time.Minute))); got != 0 {
		t.Errorf("took %d binds before the other watches had caught up, want none", got)
	}
	s.progress()
	got := s.h.Take(s.now.Add(-time.Minute))
	if len(got) != 1 || got[0].Unsettled {
		t.Errorf("took %v, want one settled bind", got)
	}
	s.birth("python-m2")
	s.create("c2")
	s.serve()
	late := s.h.Take(s.now.Add(time.Second))
	if len(late) != 1 || !late[0].Unsettled || late[0].Claim.Name != "c2" {
		t.Errorf("took %v after the deadline, want c2 alone, unsettled", late)
	}
}
