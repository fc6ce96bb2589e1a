package freshness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/revision"
)

// blueprint is a one-container content.
func blueprint(t *testing.T, image string, more ...any) revision.Blueprint {
	t.Helper()
	podSpec := map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}
	for i := 0; i < len(more); i += 2 {
		podSpec[more[i].(string)] = more[i+1]
	}
	b, err := revision.FromSpec(map[string]any{"podTemplate": map[string]any{"spec": podSpec}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func paths(t *testing.T, p ...string) revision.PathSet {
	t.Helper()
	set, err := revision.ParsePaths(p...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// world is a snapshot in which everything is as it should be: claim c binds
// member m of pool p, built from template t at v2, which followed v1.
func world(t *testing.T, change ...func(*Snapshot)) Snapshot {
	t.Helper()
	v1, v2 := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2")
	s := Snapshot{
		Operation: Bind,
		Member: Member{
			Name: "m", UID: "uid-m", Controller: Owner{Kind: OwnedByPool, Name: "p", UID: "uid-p"},
			NamedFirst: true, Generation: 1, Template: "t", Content: v2, Proposed: v2, PodName: "m", PodIPs: []string{"10.0.0.1"},
		},
		ClaimRef: Owner{Kind: OwnedByClaim, Name: "c", UID: "uid-c"},
		Claim:    &Claim{UID: "uid-c", Pool: "p", Names: []string{"m"}},
		Pool:     &Pool{Name: "p", UID: "uid-p", Template: "t", Strategy: Recreate},
		Template: &Template{Name: "t", Hash: v2.Hash(), Content: v2},
		Pod:      &Pod{ControllerUID: "uid-m", IPs: []string{"10.0.0.1"}, Content: v2},
		Known:    []Known{{Hash: v2.Hash(), Content: v2}, {Hash: v1.Hash(), Content: v1}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func builtFrom(b revision.Blueprint) func(*Snapshot) {
	return func(s *Snapshot) { s.Member.Content, s.Member.Proposed = b, b }
}

func TestJudgeBind(t *testing.T) {
	v1, v2, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2"), blueprint(t, "sandbox:odd")
	type want struct {
		Allowed, Tolerated bool
		Reason             Reason
	}
	allow := want{Allowed: true, Reason: Fresh}
	deny := func(r Reason) want { return want{Reason: r} }
	tolerate := func(r Reason) want { return want{Allowed: true, Tolerated: true, Reason: r} }
	at := func(second int64) time.Time { return time.Unix(1_700_000_000+second, 0) }

	cases := map[string]struct {
		change func(*Snapshot)
		want   want
	}{
		"all is well":                          {func(*Snapshot) {}, allow},
		"stale, named by history":              {builtFrom(v1), deny(StaleRevision)},
		"stale, history emptied":               {func(s *Snapshot) { builtFrom(v1)(s); s.Known = nil }, deny(UnknownRevision)},
		"equal to nothing known":               {builtFrom(odd), deny(UnknownRevision)},
		"stale under OnReplenish":              {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = OnReplenish }, tolerate(StaleRevision)},
		"unknown under OnReplenish":            {func(s *Snapshot) { builtFrom(odd)(s); s.Pool.Strategy = OnReplenish }, tolerate(UnknownRevision)},
		"stale under a strategy of theirs":     {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = PlatformOwned }, tolerate(StaleRevision)},
		"stale while rolling, admit fresh":     {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = RollingUpdate }, deny(StaleRevision)},
		"stale while rolling, admit any":       {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy, s.Pool.AdmitAny = RollingUpdate, true }, tolerate(StaleRevision)},
		"stale under Recreate, admit any":      {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.AdmitAny = true }, deny(StaleRevision)},
		"rolled back: the old one is in force": {func(s *Snapshot) { builtFrom(v1)(s); s.Pod.Content, s.Template = v1, &Template{"t", v1.Hash(), v1, ""} }, allow},
		"an injected leaf nobody listed":       {builtFrom(blueprint(t, "sandbox:v2", "hostNetwork", true)), deny(UnknownRevision)},
		"an injected leaf on the list": {func(s *Snapshot) {
			builtFrom(blueprint(t, "sandbox:v2", "hostNetwork", true))(s)
			s.Injected = paths(t, "podTemplate.spec.hostNetwork")
		}, allow},
		"the template lost a field":           {func(s *Snapshot) { builtFrom(blueprint(t, "sandbox:v2", "runtimeClassName", "kata"))(s); s.Known = nil }, deny(UnknownRevision)},
		"spec edited back, pod still old":     {func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 3, v1 }, deny(StaleRevision)},
		"spec edited back, pod is of nothing": {func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 3, odd }, deny(UnknownRevision)},
		"spec edited, pod has defaults only": {func(s *Snapshot) {
			s.Member.Generation = 3
			s.Pod.Content = blueprint(t, "sandbox:v2", "restartPolicy", "Always")
			s.PodInjected = paths(t, "podTemplate.spec.restartPolicy=Always")
		}, allow},
		"claim names another (old releases)":    {func(s *Snapshot) { s.Claim.Names, s.Member.NamedFirst = []string{"n"}, false }, deny(ClaimNamesAnother)},
		"member names no template":              {func(s *Snapshot) { s.Member.Template = "" }, allow},
		"pod going, with other addresses":       {func(s *Snapshot) { s.Pod.IPs, s.Pod.Deleting = []string{"10.0.0.2"}, true }, deny(PodTerminating)},
		"pod ended, with other addresses":       {func(s *Snapshot) { s.Pod.IPs, s.Pod.Finished = nil, true }, deny(PodFinished)},
		"member being deleted":                  {func(s *Snapshot) { s.Member.Deleting = true }, deny(MemberTerminating)},
		"member used before":                    {func(s *Snapshot) { s.Member.Used = true }, deny(MemberUsed)},
		"member of another claim":               {func(s *Snapshot) { s.Member.Controller.Kind = OwnedByClaim }, deny(MemberClaimed)},
		"nobody's sandbox, used before":         {func(s *Snapshot) { s.Member.Controller, s.Member.Used = Owner{}, true }, deny(NotAMember)},
		"nobody's sandbox":                      {func(s *Snapshot) { s.Member.Controller = Owner{} }, deny(NotAMember)},
		"somebody else's sandbox":               {func(s *Snapshot) { s.Member.Controller.Kind = OwnedByAnother }, deny(NotAMember)},
		"no pod yet":                            {func(s *Snapshot) { s.Pod, s.Member.PodIPs = nil, nil }, deny(PodNotYet)},
		"pod gone":                              {func(s *Snapshot) { s.Pod = nil }, deny(PodFinished)},
		"pod being deleted":                     {func(s *Snapshot) { s.Pod.Deleting = true }, deny(PodTerminating)},
		"pod ended":                             {func(s *Snapshot) { s.Pod.Finished = true }, deny(PodFinished)},
		"pod of somebody else":                  {func(s *Snapshot) { s.Pod.ControllerUID = "uid-x" }, deny(PodForeign)},
		"node about to go":                      {func(s *Snapshot) { s.Pod.NodeLeaving = "not ready" }, deny(NodeLeaving)},
		"status shows another pod's address":    {func(s *Snapshot) { s.Pod.IPs = []string{"10.0.0.9"} }, deny(PodForeign)},
		"pod of a sandbox that was":             {func(s *Snapshot) { s.Member.Created, s.Pod.Created = at(61), at(0) }, deny(PodForeign)},
		"pod as old as clocks may say":          {func(s *Snapshot) { s.Member.Created, s.Pod.Created = at(60), at(0) }, allow},
		"made by hand after its pod":            {func(s *Snapshot) { s.Member.ByHand, s.Member.Created, s.Pod.Created = true, at(1), at(0) }, deny(PodForeign)},
		"made by hand in the same second":       {func(s *Snapshot) { s.Member.ByHand, s.Member.Created, s.Pod.Created = true, at(0), at(0) }, allow},
		"made by hand, with an unknown pod":     {func(s *Snapshot) { s.Member.ByHand, s.Member.Created = true, at(1) }, allow},
		"pod whose age nobody knows":            {func(s *Snapshot) { s.Member.Created = at(61) }, allow},
		"pod of a sandbox that was, and ended":  {func(s *Snapshot) { s.Member.Created, s.Pod.Created, s.Pod.Finished = at(61), at(0), true }, deny(PodFinished)},
		"pod of a sandbox that was, and going":  {func(s *Snapshot) { s.Member.Created, s.Pod.Created, s.Pod.Deleting = at(61), at(0), true }, deny(PodTerminating)},
		"addresses in another order":            {func(s *Snapshot) { s.Member.PodIPs, s.Pod.IPs = []string{"a", "b"}, []string{"b", "a"} }, allow},
		"status shows no address yet":           {func(s *Snapshot) { s.Member.PodIPs = nil }, allow},
		"claim gone":                            {func(s *Snapshot) { s.Claim = nil }, deny(ClaimGone)},
		"claim being deleted":                   {func(s *Snapshot) { s.Claim.Deleting = true }, deny(ClaimGone)},
		"claim of the same name, another one":   {func(s *Snapshot) { s.Claim.UID = "uid-x" }, deny(ClaimReplaced)},
		"claim names another member":            {func(s *Snapshot) { s.Claim.Names = []string{"n"} }, deny(ClaimNamesAnother)},
		"claim names nothing":                   {func(s *Snapshot) { s.Claim.Names = nil }, deny(ClaimNamesAnother)},
		"claim names nothing (old releases)":    {func(s *Snapshot) { s.Claim.Names, s.Member.NamedFirst = nil, false }, allow},
		"claim holds one already":               {func(s *Snapshot) { s.Held = []string{"n"} }, deny(ClaimHoldsAnother)},
		"the claim's fault before the member's": {func(s *Snapshot) { builtFrom(v1)(s); s.Claim.Names = []string{"n"} }, deny(ClaimNamesAnother)},
		"pool gone":                             {func(s *Snapshot) { s.Pool = nil }, deny(PoolGone)},
		"pool being deleted":                    {func(s *Snapshot) { s.Pool.Deleting = true }, deny(PoolGone)},
		"pool of the same name, another one":    {func(s *Snapshot) { s.Pool.UID = "uid-x" }, deny(PoolGone)},
		"claim asks for another pool":           {func(s *Snapshot) { s.Claim.Pool = "q" }, deny(PoolMismatch)},
		"claim asks for any pool of t":          {func(s *Snapshot) { s.Claim.Pool, s.Claim.Template, s.Claim.AnyPool = "", "t", true }, allow},
		"claim asks for any pool of u":          {func(s *Snapshot) { s.Claim.Pool, s.Claim.Template, s.Claim.AnyPool = "", "u", true }, deny(PoolMismatch)},
		"claim asks for no pool":                {func(s *Snapshot) { s.Claim.Pool, s.Claim.Template = "", "t" }, deny(PoolMismatch)},
		"pool switched to another template":     {func(s *Snapshot) { s.Pool.Template, s.Template.Name = "u", "u" }, deny(TemplateMismatch)},
		"switched, under OnReplenish":           {func(s *Snapshot) { s.Pool.Template, s.Pool.Strategy = "u", OnReplenish }, deny(TemplateMismatch)},
		"template gone":                         {func(s *Snapshot) { s.Template = nil }, deny(TemplateGone)},
		"the bind changes the blueprint":        {func(s *Snapshot) { s.Member.Proposed = odd }, deny(BlueprintChanged)},
		"the bind makes a stale one look fresh": {func(s *Snapshot) { s.Member.Content, s.Member.Proposed = v1, v2 }, deny(BlueprintChanged)},
		"tolerated, but dead":                   {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = OnReplenish; s.Pod.Deleting = true }, deny(PodTerminating)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Judge(world(t, tc.change))
			if diff := cmp.Diff(tc.want, want{got.Allowed, got.Tolerated, got.Reason}); diff != "" {
				t.Errorf("Judge() (-want,+got):\n%s\ndetail: %s", diff, got.Detail)
			}
			if !got.Allowed && got.Detail == "" {
				t.Error("a denial does not say why")
			}
		})
	}
}

func TestJudgeNamesRevisions(t *testing.T) {
	v1, v2 := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2")
	got := Judge(world(t, builtFrom(v1)))
	want := Verdict{
		Reason: StaleRevision, Found: v1.Hash(), Expected: v2.Hash(),
		Detail: `containers[name=c].image: "sandbox:v2" -> "sandbox:v1"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Judge() (-want,+got):\n%s", diff)
	}
}

func TestJudgeNamesTheRevisionInForce(t *testing.T) {
	v2 := blueprint(t, "sandbox:v2")
	want := Verdict{Allowed: true, Reason: Fresh, Found: v2.Hash(), Expected: v2.Hash()}
	if diff := cmp.Diff(want, Judge(world(t))); diff != "" {
		t.Errorf("Judge() (-want,+got):\n%s", diff)
	}
}

func TestJudgeOtherOperations(t *testing.T) {
	v1, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:odd")
	cold := func(s *Snapshot) {
		s.Operation, s.Member.Controller, s.Pod, s.Claim.Names = ColdStart, s.ClaimRef, nil, nil
	}
	birth := func(s *Snapshot) {
		s.Operation, s.Claim, s.ClaimRef, s.Pod = Birth, nil, Owner{}, nil
	}
	idle := func(s *Snapshot) { s.Operation, s.Claim, s.ClaimRef = Idle, nil, Owner{} }

	cases := map[string]struct {
		changes     []func(*Snapshot)
		wantAllowed bool
		wantReason  Reason
	}{
		"cold start, current":                  {[]func(*Snapshot){cold}, true, Fresh},
		"cold start from a late cache":         {[]func(*Snapshot){cold, builtFrom(v1)}, false, StaleRevision},
		"cold start of something else":         {[]func(*Snapshot){cold, builtFrom(odd)}, false, UnknownRevision},
		"cold start, stale, under OnReplenish": {[]func(*Snapshot){cold, builtFrom(v1), func(s *Snapshot) { s.Pool.Strategy = OnReplenish }}, true, StaleRevision},
		"cold start, unknown, without a pool":  {[]func(*Snapshot){cold, builtFrom(odd), func(s *Snapshot) { s.Pool = nil; s.Claim.Pool, s.Claim.Template = "", "t" }}, false, UnknownRevision},
		"cold start, stale, without a pool":    {[]func(*Snapshot){cold, builtFrom(v1), func(s *Snapshot) { s.Pool = nil; s.Claim.Pool, s.Claim.Template = "", "t" }}, false, StaleRevision},
		"cold start the template refuses":      {[]func(*Snapshot){cold, func(s *Snapshot) { s.Template.Unrenderable = "no env" }}, false, UnknownRevision},
		"cold start beside a warm one":         {[]func(*Snapshot){cold, func(s *Snapshot) { s.Held = []string{"n"} }}, false, ClaimHoldsAnother},
		"cold start beside a pod of its name":  {[]func(*Snapshot){cold, func(s *Snapshot) { s.Pod = &Pod{Content: s.Template.Content} }}, false, PodForeign},
		"the same under OnReplenish":           {[]func(*Snapshot){cold, func(s *Snapshot) { s.Pod = &Pod{}; s.Pool.Strategy = OnReplenish }}, false, PodForeign},
		"cold start in a pod of another name":  {[]func(*Snapshot){cold, func(s *Snapshot) { s.Member.PodName = "absent" }}, false, PodForeign},
		"cold start, claim gone":               {[]func(*Snapshot){cold, func(s *Snapshot) { s.Claim = nil }}, false, ClaimGone},
		"cold start, pool gone":                {[]func(*Snapshot){cold, func(s *Snapshot) { s.Pool = nil }}, false, PoolGone},
		"cold start in a pod, pool gone":       {[]func(*Snapshot){cold, func(s *Snapshot) { s.Operation, s.Pool, s.Pod = WarmStart, nil, &Pod{Content: s.Template.Content} }}, false, PoolGone},
		"cold start, older without the defaults": {[]func(*Snapshot){cold, func(s *Snapshot) {
			s.Plain = &Rendered{Content: odd, Known: []Known{{Hash: "older", Content: s.Template.Content}}}
		}}, true, Fresh},
		"cold start, pool going":                  {[]func(*Snapshot){cold, func(s *Snapshot) { s.Pool.Deleting = true }}, false, PoolGone},
		"cold start, template gone":               {[]func(*Snapshot){cold, func(s *Snapshot) { s.Template = nil }}, false, TemplateGone},
		"cold start, pool switched its template":  {[]func(*Snapshot){cold, func(s *Snapshot) { s.Member.Template = "old" }}, false, TemplateMismatch},
		"birth, current":                          {[]func(*Snapshot){birth}, true, Fresh},
		"birth, stale":                            {[]func(*Snapshot){birth, builtFrom(v1)}, false, StaleRevision},
		"birth, stale, under OnReplenish":         {[]func(*Snapshot){birth, builtFrom(v1), func(s *Snapshot) { s.Pool.Strategy = OnReplenish }}, true, StaleRevision},
		"birth of something unknown":              {[]func(*Snapshot){birth, builtFrom(odd)}, true, UnknownRevision},
		"birth from the template of before":       {[]func(*Snapshot){birth, func(s *Snapshot) { s.Member.Template = "old" }}, false, TemplateMismatch},
		"birth in a pool that is gone":            {[]func(*Snapshot){birth, builtFrom(v1), func(s *Snapshot) { s.Pool = nil }}, true, Fresh},
		"birth in a pool that is another one now": {[]func(*Snapshot){birth, builtFrom(v1), func(s *Snapshot) { s.Pool.UID = "uid-p2" }}, true, Fresh},
		"birth in a pool that is going":           {[]func(*Snapshot){birth, builtFrom(v1), func(s *Snapshot) { s.Pool.Deleting = true }}, true, Fresh},
		"birth beside a pod of its name":          {[]func(*Snapshot){birth, func(s *Snapshot) { s.Pod = &Pod{Content: s.Template.Content} }}, false, PodForeign},
		"birth in a pod of another name":          {[]func(*Snapshot){birth, func(s *Snapshot) { s.Member.PodName = "absent" }}, false, PodForeign},
		"birth of a bare pod":                     {[]func(*Snapshot){birth, func(s *Snapshot) { s.Member.Bare, s.Pod = true, &Pod{Content: s.Template.Content} }}, true, Fresh},
		"cold start for no template of its name":  {[]func(*Snapshot){cold, func(s *Snapshot) { s.Member.Template = "" }}, true, Fresh},
		"birth of a member that names none":       {[]func(*Snapshot){birth, func(s *Snapshot) { s.Member.Template = "" }}, true, Fresh},
		"idle, created before a restart":          {[]func(*Snapshot){idle, func(s *Snapshot) { s.Pool.Restarted, s.Member.Created = time.Unix(2, 0), time.Unix(1, 0) }}, false, StaleRevision},
		"idle, restarted at no time":              {[]func(*Snapshot){idle, func(s *Snapshot) { s.Member.Created = time.Unix(1, 0) }}, true, Fresh},
		"idle, created at no time":                {[]func(*Snapshot){idle, func(s *Snapshot) { s.Pool.Restarted = time.Unix(2, 0) }}, true, Fresh},
		"birth while the template is gone":        {[]func(*Snapshot){birth, builtFrom(v1), func(s *Snapshot) { s.Template = nil }}, true, Fresh},
		"idle, current":                           {[]func(*Snapshot){idle}, true, Fresh},
		"idle, stale":                             {[]func(*Snapshot){idle, builtFrom(v1)}, false, StaleRevision},
		"idle, used":                              {[]func(*Snapshot){idle, func(s *Snapshot) { s.Member.Used = true }}, false, MemberUsed},
		"idle, no pod yet":                        {[]func(*Snapshot){idle, func(s *Snapshot) { s.Pod, s.Member.PodIPs = nil, nil }}, false, PodNotYet},
		"idle, taken meanwhile":                   {[]func(*Snapshot){idle, func(s *Snapshot) { s.Member.Controller.Kind = OwnedByClaim }}, false, MemberClaimed},
		"idle, built from another template":       {[]func(*Snapshot){idle, func(s *Snapshot) { s.Member.Template = "old" }}, false, TemplateMismatch},
		"idle, template gone":                     {[]func(*Snapshot){idle, func(s *Snapshot) { s.Template = nil }}, false, TemplateGone},
		"idle, spec edited and the pod is stale":  {[]func(*Snapshot){idle, func(s *Snapshot) { s.Member.Generation = 2; s.Pod.Content = v1 }}, false, StaleRevision},
		"idle, stale under OnReplenish is wanted": {[]func(*Snapshot){idle, builtFrom(v1), func(s *Snapshot) { s.Pool.Strategy = OnReplenish }}, true, StaleRevision},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Judge(world(t, tc.changes...))
			if got.Allowed != tc.wantAllowed || got.Reason != tc.wantReason {
				t.Errorf("Judge() = allowed %t, %s (%s), want allowed %t, %s", got.Allowed, got.Reason, got.Detail, tc.wantAllowed, tc.wantReason)
			}
		})
	}
}

func TestRevisionOf(t *testing.T) {
	v1, v2, odd := blueprint(t, "sandbox:v1"), blueprint(t, "sandbox:v2"), blueprint(t, "sandbox:odd")
	cases := map[string]struct {
		change            func(*Snapshot)
		wantMember, wantP string
	}{
		"both current":              {func(*Snapshot) {}, v2.Hash(), v2.Hash()},
		"both stale":                {func(s *Snapshot) { builtFrom(v1)(s); s.Pod.Content = v1 }, v1.Hash(), v1.Hash()},
		"pod older than its spec":   {func(s *Snapshot) { s.Pod.Content = v1 }, v2.Hash(), v1.Hash()},
		"pod of nothing known":      {func(s *Snapshot) { s.Pod.Content = odd }, v2.Hash(), odd.Hash()},
		"no template, pod the same": {func(s *Snapshot) { s.Template = nil }, v2.Hash(), v2.Hash()},
		"the pod alone is current":  {func(s *Snapshot) { builtFrom(v1)(s) }, v1.Hash(), v2.Hash()},
		"no template":               {func(s *Snapshot) { s.Template = nil; s.Pod.Content = odd }, v2.Hash(), odd.Hash()},
		"injected leaf, listed": {func(s *Snapshot) {
			b := blueprint(t, "sandbox:v2", "hostNetwork", true)
			builtFrom(b)(s)
			s.Pod.Content, s.Injected = b, paths(t, "podTemplate.spec.hostNetwork")
		}, v2.Hash(), v2.Hash()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := world(t, tc.change)
			if got := RevisionOf(s); got != tc.wantMember {
				t.Errorf("RevisionOf() = %s, want %s", got, tc.wantMember)
			}
			if got := PodRevisionOf(s); got != tc.wantP {
				t.Errorf("PodRevisionOf() = %s, want %s", got, tc.wantP)
			}
		})
	}
}

func TestEveryDenialHasAFault(t *testing.T) {
	nobody := map[Reason]bool{PodNotYet: true, TemplateGone: true, BlueprintChanged: true, OwnerMismatch: true, Fresh: true}
	for _, r := range Reasons() {
		if got := r.Fault() == FaultNobody; got != nobody[r] {
			t.Errorf("%s.Fault() == FaultNobody is %t, want %t", r, got, nobody[r])
		}
	}
}

// What is given back to a pool is judged as what is given away, but that no claim takes it.
func TestJudgeReturn(t *testing.T) {
	v1 := blueprint(t, "sandbox:v1")
	for name, tc := range map[string]struct {
		change func(*Snapshot)
		want   Verdict
	}{
		"all is well":             {func(*Snapshot) {}, Verdict{Allowed: true, Reason: Fresh}},
		"the pool wants none":     {func(s *Snapshot) { s.Member.Used = true }, Verdict{Reason: MemberUsed}},
		"a claim has it":          {func(s *Snapshot) { s.Member.Controller.Kind = OwnedByClaim }, Verdict{Reason: MemberClaimed}},
		"being deleted":           {func(s *Snapshot) { s.Member.Deleting = true }, Verdict{Reason: MemberTerminating}},
		"stale":                   {builtFrom(v1), Verdict{Reason: StaleRevision}},
		"stale, and wanted":       {func(s *Snapshot) { builtFrom(v1)(s); s.Pool.Strategy = OnReplenish }, Verdict{Allowed: true, Tolerated: true, Reason: StaleRevision}},
		"changed":                 {func(s *Snapshot) { s.Member.Proposed = v1 }, Verdict{Reason: BlueprintChanged}},
		"its pod is another's":    {func(s *Snapshot) { s.Member.Generation, s.Pod.Content = 2, v1 }, Verdict{Reason: StaleRevision}},
		"its pod has ended":       {func(s *Snapshot) { s.Pod.Finished = true }, Verdict{Reason: PodFinished}},
		"its node leaves":         {func(s *Snapshot) { s.Pod.NodeLeaving = "it is being deleted" }, Verdict{Reason: NodeLeaving}},
		"no pool":                 {func(s *Snapshot) { s.Pool = nil }, Verdict{Reason: PoolGone}},
		"of another claim's pool": {func(s *Snapshot) { s.Claim.Pool = "q" }, Verdict{Allowed: true, Reason: Fresh}},
		"no template":             {func(s *Snapshot) { s.Template = nil }, Verdict{Reason: TemplateGone}},
		"before the restart":      {func(s *Snapshot) { s.Member.Created, s.Pool.Restarted = time.Unix(1, 0), time.Unix(2, 0) }, Verdict{Reason: StaleRevision}},
		"no claim":                {func(s *Snapshot) { s.Claim = nil }, Verdict{Allowed: true, Reason: Fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(world(t, func(s *Snapshot) { s.Operation = Return }, tc.change))
			got = Verdict{Allowed: got.Allowed, Tolerated: got.Tolerated, Reason: got.Reason}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want,+got):\n%s", diff)
			}
		})
	}
}
