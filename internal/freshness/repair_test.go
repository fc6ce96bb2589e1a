package freshness

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/revision"
)

// coldWorld is a cold start of the older revision in a pool that wants fresh ones.
func coldWorld(t *testing.T, change ...func(*Snapshot)) Snapshot {
	t.Helper()
	return world(t, append([]func(*Snapshot){builtFrom(blueprint(t, "sandbox:v1")), func(s *Snapshot) {
		s.Operation, s.Pod = ColdStart, nil
		s.Member.Controller = s.ClaimRef
	}}, change...)...)
}

func TestRepairOf(t *testing.T) {
	v1, v2 := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2")
	plain1, plain2 := blueprint(t, "plain:v1"), blueprint(t, "plain:v2")
	plain := func(s *Snapshot) {
		s.Plain = &Rendered{Content: plain2, Known: []Known{{Hash: v2.Hash(), Content: plain2}, {Hash: v1.Hash(), Content: plain1}}}
	}
	cases := map[string]struct {
		change func(*Snapshot)
		want   *Repair
	}{
		"of the older revision":              {func(*Snapshot) {}, &Repair{From: v1.Hash(), To: v2.Hash()}},
		"without a pool":                     {func(s *Snapshot) { s.Pool, s.Claim.Template = nil, "t" }, &Repair{From: v1.Hash(), To: v2.Hash()}},
		"without secure defaults":            {func(s *Snapshot) { plain(s); builtFrom(plain1)(s) }, &Repair{From: v1.Hash(), To: v2.Hash(), Plain: true}},
		"with them where they are optional":  {plain, &Repair{From: v1.Hash(), To: v2.Hash()}},
		"of the revision in force":           {builtFrom(v2), nil},
		"of it without secure defaults":      {func(s *Snapshot) { plain(s); builtFrom(plain2)(s) }, nil},
		"of nothing that is known":           {builtFrom(blueprint(t, "sandbox:odd")), nil},
		"of nothing, all the pool tolerates": {func(s *Snapshot) { builtFrom(blueprint(t, "sandbox:odd"))(s); s.Pool.Suspended = v2.Hash() }, nil},
		"history emptied":                    {func(s *Snapshot) { s.Known = nil }, nil},
		"older, and edited by somebody":      {builtFrom(blueprint(t, "sandbox:v1", "hostNetwork", true)), nil},
		"older, and edited where the pool allows for it": {func(s *Snapshot) {
			builtFrom(blueprint(t, "sandbox:v1", "hostNetwork", true))(s)
			s.Injected = paths(t, "podTemplate.spec.hostNetwork")
		}, nil},
		"older, and edited where the pool allows for it, without secure defaults": {func(s *Snapshot) {
			plain(s)
			builtFrom(blueprint(t, "plain:v1", "hostNetwork", true))(s)
			s.Injected = paths(t, "podTemplate.spec.hostNetwork")
		}, nil},
		"in a pool that serves stale ones": {func(s *Snapshot) { s.Pool.Strategy = OnReplenish }, nil},
		"by a claim that is gone":          {func(s *Snapshot) { s.Claim = nil }, nil},
		"by an earlier claim of the name":  {func(s *Snapshot) { s.Claim.UID = "uid-x" }, nil},
		"by a claim that has one":          {func(s *Snapshot) { s.Held = []string{"n"} }, nil},
		"by two claims":                    {func(s *Snapshot) { s.Besides = []Owner{{Kind: OwnedByClaim, Name: "d", UID: "uid-d"}} }, nil},
		"over a pod that is there":         {func(s *Snapshot) { s.Pod = &Pod{} }, nil},
		"of a pool that is gone":           {func(s *Snapshot) { s.Pool = nil }, nil},
		"of a pool that goes":              {func(s *Snapshot) { s.Pool.Deleting = true }, nil},
		"of another template":              {func(s *Snapshot) { s.Member.Template = "u" }, nil},
		"of a template that is gone":       {func(s *Snapshot) { s.Template = nil }, nil},
		"of one that gives it no sandbox":  {func(s *Snapshot) { s.Template.Unrenderable = "no env" }, nil},
		"a bind": {func(s *Snapshot) {
			s.Operation = Bind
			s.Member.Controller = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"}
		}, nil},
		"a birth": {func(s *Snapshot) {
			s.Operation = Birth
			s.Member.Controller = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"}
		}, nil},
		"a birth that nobody undoes": {func(s *Snapshot) {
			s.Operation, s.Pool.Replenishes = Birth, true
			s.Member.Controller = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"}
		}, &Repair{From: v1.Hash(), To: v2.Hash()}},
		"a birth in a pool that serves stale ones": {func(s *Snapshot) {
			s.Operation, s.Pool.Replenishes, s.Pool.Strategy = Birth, true, OnReplenish
			s.Member.Controller = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"}
		}, nil},
		"a birth in no pool": {func(s *Snapshot) { s.Operation, s.Pool = Birth, nil }, nil},
		"a bind to one nobody undoes": {func(s *Snapshot) {
			s.Operation, s.Pool.Replenishes = Bind, true
			s.Pod = &Pod{ControllerUID: "uid-m", IPs: []string{"10.0.0.1"}, Content: v1}
			s.Member.Controller = Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"}
		}, nil},
		"a sandbox for a bare pod": {func(s *Snapshot) { s.Operation = WarmStart; plain(s) }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RepairOf(coldWorld(t, tc.change))); diff != "" {
				t.Errorf("RepairOf() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A comparison that was given up says nothing, least of all what to write.
func TestNothingIsRepairedWithoutComparingAllOfIt(t *testing.T) {
	got, err := RepairWithin(coldWorld(t), revision.NewBudget(1, nil))
	if got != nil || !errors.Is(err, revision.ErrBudget) {
		t.Errorf("RepairWithin() = %v, %v, want nothing and %v", got, err, revision.ErrBudget)
	}
}

// The revision in force is none to repair from, however it was rendered before.
func TestTheRevisionInForceIsNoOlderOne(t *testing.T) {
	s := world(t)
	if got := s.exactly([]Known{{Hash: s.Template.Hash, Content: s.Member.Content}}); got != "" {
		t.Errorf("exactly() = %s, want none", got)
	}
	if got := s.exactly([]Known{{Hash: "older", Content: s.Member.Content}}); got != "older" {
		t.Errorf("exactly() = %q, want older", got)
	}
}
