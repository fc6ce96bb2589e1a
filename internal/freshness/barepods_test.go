package freshness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bareWorld is world for a member that is a Pod itself.
func bareWorld(t *testing.T, op Operation, change func(*Snapshot)) Snapshot {
	t.Helper()
	return world(t, func(s *Snapshot) {
		s.Operation, s.ClaimRef, s.Claim = op, Owner{}, nil
		s.Member.Bare, s.Member.NamedFirst, s.Member.PodIPs = true, false, nil
		s.Pod.ControllerUID = "uid-p"
	}, change)
}

func TestJudgeBarePods(t *testing.T) {
	v1, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:odd")
	type want struct {
		Allowed, Tolerated bool
		Reason             Reason
	}
	allow := want{Allowed: true, Reason: Fresh}
	deny := func(r Reason) want { return want{Reason: r} }
	cases := map[string]struct {
		change func(*Snapshot)
		// release is the verdict on the write, idle that on the Pod at rest.
		release, idle want
	}{
		"fresh":                      {func(*Snapshot) {}, allow, allow},
		"stale":                      {builtFrom(v1), deny(StaleRevision), deny(StaleRevision)},
		"stale, under OnReplenish":   {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = OnReplenish }, want{true, true, StaleRevision}, want{true, true, StaleRevision}},
		"of no known revision":       {builtFrom(odd), deny(UnknownRevision), deny(UnknownRevision)},
		"later writes do not count":  {func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 3, odd }, allow, allow},
		"being deleted":              {func(s *Snapshot) { s.Member.Deleting = true }, deny(MemberTerminating), deny(MemberTerminating)},
		"ended":                      {func(s *Snapshot) { s.Pod.Finished = true }, deny(PodFinished), deny(PodFinished)},
		"node about to go":           {func(s *Snapshot) { s.Pod.NodeLeaving = "not ready" }, deny(NodeLeaving), deny(NodeLeaving)},
		"used, in a pool":            {func(s *Snapshot) { s.Member.Used = true }, deny(MemberUsed), deny(MemberUsed)},
		"given to another claim":     {func(s *Snapshot) { s.Member.Used, s.Member.Controller = true, Owner{} }, deny(MemberUsed), deny(MemberUsed)},
		"orphaned":                   {func(s *Snapshot) { s.Member.Controller = Owner{} }, deny(NotAMember), deny(NotAMember)},
		"pool gone":                  {func(s *Snapshot) { s.Pool = nil }, deny(PoolGone), deny(PoolGone)},
		"pool switched":              {func(s *Snapshot) { s.Member.Template = "with name hash 1" }, deny(TemplateMismatch), deny(TemplateMismatch)},
		"template gone":              {func(s *Snapshot) { s.Template = nil }, deny(TemplateGone), deny(TemplateGone)},
		"the write changes its spec": {func(s *Snapshot) { s.Member.Proposed = odd }, deny(BlueprintChanged), allow},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for op, expected := range map[Operation]want{Release: tc.release, Idle: tc.idle} {
				got := Judge(bareWorld(t, op, tc.change))
				if diff := cmp.Diff(expected, want{got.Allowed, got.Tolerated, got.Reason}); diff != "" {
					t.Errorf("%s (-want,+got):\n%s%s", op, diff, got.Detail)
				}
			}
		})
	}
}

func TestJudgeReleased(t *testing.T) {
	cases := map[string]struct {
		change func(*Snapshot)
		want   Reason
	}{
		"fresh":         {func(*Snapshot) {}, Fresh},
		"stale":         {builtFrom(blueprint(t, "sandbox:v1")), StaleRevision},
		"being deleted": {func(s *Snapshot) { s.Member.Deleting = true }, MemberTerminating},
		"ended":         {func(s *Snapshot) { s.Pod.Finished = true }, PodFinished},
		"pool gone":     {func(s *Snapshot) { s.Pool, s.Template = nil, nil }, TemplateGone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Judge(bareWorld(t, Released, func(s *Snapshot) {
				s.Member.Controller, s.Member.Used = Owner{}, true
				tc.change(s)
			}))
			if got.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", got.Reason, got.Detail, tc.want)
			}
		})
	}
}

func TestJudgeWarmStart(t *testing.T) {
	secure := []any{"automountServiceAccountToken", false}
	v1, v2 := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2")
	secure1 := blueprint(t, "sandbox:v1", secure...)
	secure2 := blueprint(t, "sandbox:v2", secure...)
	odd := blueprint(t, "sandbox:odd")
	cases := map[string]struct {
		change func(*Snapshot)
		want   Reason
	}{
		"secure defaults on the sandbox":   {func(*Snapshot) {}, Fresh},
		"no secure defaults":               {builtFrom(v2), Fresh},
		"stale sandbox":                    {builtFrom(secure1), StaleRevision},
		"stale sandbox, no defaults":       {builtFrom(v1), StaleRevision},
		"odd sandbox":                      {builtFrom(odd), UnknownRevision},
		"stale pod":                        {func(s *Snapshot) { s.Pod.Content = v1 }, StaleRevision},
		"stale pod, of a pool that allows": {func(s *Snapshot) { s.Pod.Content, s.Pool.Strategy = v1, OnReplenish }, StaleRevision},
		"odd pod":                          {func(s *Snapshot) { s.Pod.Content = odd }, UnknownRevision},
		"pod with secure defaults":         {func(s *Snapshot) { s.Pod.Content = secure2 }, UnknownRevision},
		"pod gone":                         {func(s *Snapshot) { s.Pod = nil }, PodFinished},
		"pod being deleted":                {func(s *Snapshot) { s.Pod.Deleting = true }, PodTerminating},
		"pod ended":                        {func(s *Snapshot) { s.Pod.Finished = true }, PodFinished},
		"pod of a sandbox, or a pool":      {func(s *Snapshot) { s.Pod.ControllerUID = "uid-x" }, PodForeign},
		"pod given to this claim":          {func(s *Snapshot) { s.Pod.ClaimUID = "uid-c" }, Fresh},
		"pod given to another claim":       {func(s *Snapshot) { s.Pod.ClaimUID = "uid-x" }, MemberClaimed},
		"node about to go":                 {func(s *Snapshot) { s.Pod.NodeLeaving = "not ready" }, NodeLeaving},
		"claim gone":                       {func(s *Snapshot) { s.Claim = nil }, ClaimGone},
		"somebody attached a container":    {func(s *Snapshot) { s.Pod.Ephemeral = true }, PodModified},
		"claim holds one":                  {func(s *Snapshot) { s.Held = []string{"n"} }, ClaimHoldsAnother},
		"template gone":                    {func(s *Snapshot) { s.Template = nil }, TemplateGone},
		"its pool is gone since":           {func(s *Snapshot) { s.Pool = nil }, Fresh},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := world(t, func(s *Snapshot) {
				s.Operation = WarmStart
				s.Claim = &Claim{UID: "uid-c", Template: "t", AnyPool: true}
				s.Member = Member{Name: "c", Controller: s.ClaimRef, PodName: "m"}
				builtFrom(secure2)(s)
				s.Pod.ControllerUID = ""
				s.Template.Content = secure2
				s.Known = []Known{{s.Template.Hash, secure2}, {v1.Hash(), secure1}}
				s.Plain = &Rendered{v2, []Known{{s.Template.Hash, v2}, {v1.Hash(), v1}}}
			}, tc.change)
			got := Judge(s)
			if got.Reason != tc.want || got.Tolerated != (s.Pool != nil && s.Pool.Strategy == OnReplenish) {
				t.Errorf("judged %s, tolerated %t (%s), want %s", got.Reason, got.Tolerated, got.Detail, tc.want)
			}
		})
	}
}

// Without Plain, what a release with secure defaults built must have them.
func TestColdStartForms(t *testing.T) {
	v2 := blueprint(t, "sandbox:v2")
	secure := blueprint(t, "sandbox:v2", "automountServiceAccountToken", false)
	for name, tc := range map[string]struct {
		plain *Rendered
		want  Reason
	}{
		"of a release without them": {&Rendered{Content: v2}, Fresh},
		"of any other":              {nil, UnknownRevision},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(world(t, builtFrom(v2), func(s *Snapshot) {
				s.Operation, s.Template.Content, s.Plain, s.Pod = ColdStart, secure, tc.plain, nil
			}))
			if got.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", got.Reason, got.Detail, tc.want)
			}
		})
	}
}

func TestPoolsThatAreTakenByName(t *testing.T) {
	for name, tc := range map[string]struct {
		claim Claim
		want  Reason
	}{
		"named":                   {Claim{Template: "t", Pool: "p"}, Fresh},
		"named, another template": {Claim{Template: "u", Pool: "p"}, PoolMismatch},
		"any pool":                {Claim{Template: "t", AnyPool: true}, PoolMismatch},
		"none":                    {Claim{Template: "t"}, PoolMismatch},
		"named, by v1beta1":       {Claim{Pool: "p"}, Fresh},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(world(t, func(s *Snapshot) {
				tc.claim.UID, tc.claim.Names = s.Claim.UID, s.Claim.Names
				s.Claim, s.Pool.ByName = &tc.claim, true
			}))
			if got.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", got.Reason, got.Detail, tc.want)
			}
		})
	}
}
