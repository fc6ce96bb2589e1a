package webhooks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func guardOn(t *testing.T, f *fakePlatform, mode settings.Mode, h *hints) *Guard {
	t.Helper()
	return &Guard{
		Platform: f, Modes: modes(t, mode, nil), Metrics: NewMetrics(prometheus.NewRegistry()), Observer: h,
		Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
	}
}

// The claim whose UID another kind has is told, by the name that it is stored by.
func TestGuardTellsTheClaimThatAnotherKindPretendsToBe(t *testing.T) {
	nobody := builders.ControllerRef(claim)
	nobody.APIVersion, nobody.Kind, nobody.Name = "example.com/v1", "Nobody", "what-the-writer-says"
	f := facts(func(f *platform.Facts) { f.Pool = nil })
	var h hints
	req := request(t, admissionv1.Update, member, builders.SandboxFrom(member).Owners(nobody).Obj())
	guardOn(t, &fakePlatform{facts: f}, settings.Enforce, &h).Handle(t.Context(), req)
	if diff := cmp.Diff([]string{"enforce c1 OwnerMismatch "}, h.denied); diff != "" {
		t.Errorf("told (-want,+got):\n%s", diff)
	}
}

// A cold start that any member would have done for says that members are there
// and not seen; what follows from it costs writes, so nothing else says so.
func TestWhichPoolIsSkipped(t *testing.T) {
	cold := request(t, admissionv1.Create, nil, builders.MakeColdStart(claim, template).Obj())
	cases := map[string]struct {
		change func(*platform.Facts)
		mode   settings.Mode
		bind   bool
		want   []string
	}{
		"a cold start":                    {func(*platform.Facts) {}, settings.Enforce, false, []string{"ns/python"}},
		"audited":                         {func(*platform.Facts) {}, settings.Audit, false, nil},
		"a bind":                          {func(*platform.Facts) {}, settings.Enforce, true, nil},
		"a claim that no member does for": {func(f *platform.Facts) { f.AlwaysCold = true }, settings.Enforce, false, nil},
		"a claim without a pool":          {func(f *platform.Facts) { f.Pool, f.Claim.Template = nil, "python" }, settings.Enforce, false, nil},
		"a cold start that is refused":    {func(f *platform.Facts) { f.Held = []string{"m"} }, settings.Enforce, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			g := guardOn(t, &fakePlatform{facts: facts(tc.change)}, tc.mode, &hints{})
			g.PoolSkipped = func(namespace, pool string) { got = append(got, namespace+"/"+pool) }
			req := cold
			if tc.bind {
				req = bindRequest(t)
			}
			g.Handle(t.Context(), req)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("passed over (-want,+got):\n%s", diff)
			}
		})
	}
}

// taking takes every write for one of a kind.
type taking struct {
	*fakePlatform
	op freshness.Operation
}

func (p taking) Classify(_ admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool) {
	return platform.Write{Operation: p.op, Old: old, New: obj}, true
}

// What a pool is not given back is told of where that is enforced, and was not only tried.
func TestWhoIsToldOfARefusedReturn(t *testing.T) {
	used := func(f *platform.Facts) { f.Member.Used = true }
	has := func(f *platform.Facts) { f.Held = []string{"m"} }
	for name, tc := range map[string]struct {
		change func(*platform.Facts)
		op     freshness.Operation
		mode   settings.Mode
		dryRun bool
		// nobody replaces members.
		nobody bool
		want   []string
		denied int
	}{
		"refused":              {used, freshness.Return, settings.Enforce, false, false, []string{member.GetName()}, 1},
		"nobody to tell":       {used, freshness.Return, settings.Enforce, false, true, nil, 1},
		"let through":          {func(*platform.Facts) {}, freshness.Return, settings.Enforce, false, false, nil, 0},
		"audited":              {used, freshness.Return, settings.Audit, false, false, nil, 1},
		"a dry run":            {used, freshness.Return, settings.Enforce, true, false, nil, 0},
		"a refused bind":       {used, freshness.Bind, settings.Enforce, false, false, nil, 0},
		"a refused cold start": {has, freshness.ColdStart, settings.Enforce, false, false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var h hints
			f := &fakePlatform{facts: facts(tc.change)}
			g := guardOn(t, f, tc.mode, &h)
			g.Platform = taking{f, tc.op}
			if !tc.nobody {
				g.ReturnRefused = func(sandbox *unstructured.Unstructured) { got = append(got, sandbox.GetName()) }
			}
			req := bindRequest(t)
			req.DryRun = ptr.To(tc.dryRun)
			g.Handle(t.Context(), req)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want,+got):\n%s", diff)
			}
			if len(h.denied) != tc.denied {
				t.Errorf("%d denials are told, want %d: %q", len(h.denied), tc.denied, h.denied)
			}
		})
	}
}

// Who was repaired is told once it is let through, and nothing is while it is only
// tried.
func TestWhoIsToldOfARepair(t *testing.T) {
	const note = "v1-a -> v1-b"
	cold := builders.SandboxFrom(builders.MakeColdStart(claim, template).Obj())
	stale := func(f *platform.Facts) { f.Held = []string{"m"} }
	cases := map[string]struct {
		note   string
		change func(*platform.Facts)
		mode   settings.Mode
		dryRun bool
		want   []string
		counts float64
	}{
		"let through":      {note, func(*platform.Facts) {}, settings.Enforce, false, []string{"c1 " + note}, 1},
		"refused":          {note, stale, settings.Enforce, false, nil, 0},
		"a dry run":        {note, func(*platform.Facts) {}, settings.Enforce, true, nil, 0},
		"mode audit":       {note, func(*platform.Facts) {}, settings.Audit, false, nil, 0},
		"of nobody's note": {"whatever", func(*platform.Facts) {}, settings.Enforce, false, nil, 0},
		"not repaired":     {"", func(*platform.Facts) {}, settings.Enforce, false, nil, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h hints
			g := guardOn(t, &fakePlatform{facts: facts(tc.change)}, tc.mode, &h)
			req := request(t, admissionv1.Create, nil, builders.SandboxFrom(cold.Obj()).Annotation(settings.RepairedKey, tc.note).Obj())
			req.DryRun = ptr.To(tc.dryRun)
			g.Handle(t.Context(), req)
			if diff := cmp.Diff(tc.want, h.repaired); diff != "" {
				t.Errorf("told (-want,+got):\n%s", diff)
			}
			if got := testutil.ToFloat64(g.Metrics.cold.repairs.WithLabelValues("coldstart", repairAdmitted)); got != tc.counts {
				t.Errorf("%v are counted, want %v", got, tc.counts)
			}
		})
	}
}

// A stale cold start that the webhook of repairs did not see is tried again: its
// controller backs off for up to 1000 s. What that webhook has named, it left as it is.
func TestWhoseMissedRepairIsTriedAgain(t *testing.T) {
	content := func(o *unstructured.Unstructured) revision.Blueprint {
		c, err := agentsandbox.RenderMember(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, now := content(template), content(builders.TemplateFrom(template).Image("sandbox:v2").Obj())
	stale := func(f *platform.Facts) {
		f.Member.Content, f.Member.Proposed = old, old
		f.Template.Hash, f.Template.Content, f.Known = now.Hash(), now, []freshness.Known{{Hash: old.Hash(), Content: old}}
	}
	cases := map[string]struct {
		change  func(*platform.Facts)
		stamp   string
		mode    settings.Mode
		dryRun  bool
		op      freshness.Operation
		verdict string
		want    []string
	}{
		"stale":              {stale, "", settings.Enforce, false, freshness.ColdStart, "StaleRevision", []string{"ns/c1"}},
		"seen":               {stale, old.Hash(), settings.Enforce, false, freshness.ColdStart, "StaleRevision", nil},
		"audited":            {stale, "", settings.Audit, false, freshness.ColdStart, "StaleRevision", nil},
		"a dry run":          {stale, "", settings.Enforce, true, freshness.ColdStart, "StaleRevision", nil},
		"fresh":              {func(*platform.Facts) {}, "", settings.Enforce, false, freshness.ColdStart, "Fresh", nil},
		"stale and let pass": {func(f *platform.Facts) { stale(f); f.Pool.Strategy = freshness.OnReplenish }, "", settings.Enforce, false, freshness.ColdStart, "StaleRevision", nil},
		"has another": {
			func(f *platform.Facts) { f.Held = []string{"m"} }, "", settings.Enforce, false, freshness.ColdStart, "ClaimHoldsAnother", nil,
		},
		"a bind": {stale, "", settings.Enforce, false, freshness.Bind, "StaleRevision", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h hints
			g := guardOn(t, &fakePlatform{facts: facts(tc.change)}, tc.mode, &h)
			req := bindRequest(t)
			if tc.op == freshness.ColdStart {
				req = request(t, admissionv1.Create, nil,
					builders.SandboxFrom(builders.MakeColdStart(claim, template).Obj()).Label(settings.StampKey, tc.stamp).Obj())
			}
			req.DryRun = ptr.To(tc.dryRun)
			resp := g.Handle(t.Context(), req)
			if got := resp.AuditAnnotations["reason"]; got != tc.verdict {
				t.Fatalf("judged %s, want %s: this case shows nothing", got, tc.verdict)
			}
			if diff := cmp.Diff(tc.want, h.tryAgain); diff != "" {
				t.Errorf("to be tried again (-want,+got):\n%s", diff)
			}
		})
	}
}

// What a sandbox was repaired from is told once, not again when a claim gets it.
func TestABindTellsOfNoRepair(t *testing.T) {
	var h hints
	g := guardOn(t, &fakePlatform{facts: facts(func(*platform.Facts) {})}, settings.Enforce, &h)
	old := builders.SandboxFrom(member).Annotation(settings.RepairedKey, "v1-a -> v1-b").Obj()
	if resp := g.Handle(t.Context(), request(t, admissionv1.Update, old, builders.Bound(old, claim, template).Obj())); !resp.Allowed {
		t.Fatalf("refused: %v", resp.Result)
	}
	if len(h.repaired) > 0 {
		t.Errorf("told: %v", h.repaired)
	}
}

// A repaired member is one more of its operation's repairs.
func TestARepairedBirthIsCounted(t *testing.T) {
	var h hints
	g := guardOn(t, &fakePlatform{facts: facts(func(f *platform.Facts) { f.Pod = nil })}, settings.Enforce, &h)
	born := builders.SandboxFrom(member).Annotation(settings.RepairedKey, "v1-a -> v1-b").Obj()
	if resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil, born)); !resp.Allowed {
		t.Fatalf("refused: %v", resp.Result)
	}
	if got := testutil.ToFloat64(g.Metrics.cold.repairs.WithLabelValues("birth", repairAdmitted)); got != 1 {
		t.Errorf("%v are counted, want 1", got)
	}
	if len(h.repaired) > 0 {
		t.Errorf("told of a claim's: %v", h.repaired)
	}
}

// A repair that went wrong is refused like anything else that is stale.
func TestAWrongRepairIsRefused(t *testing.T) {
	var h hints
	g := guardOn(t, &fakePlatform{facts: facts(func(f *platform.Facts) { f.Member.Template = "other" })}, settings.Enforce, &h)
	resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil,
		builders.SandboxFrom(builders.MakeColdStart(claim, template).Obj()).Annotation(settings.RepairedKey, "v1-a -> v1-b").Obj()))
	if resp.Allowed || resp.Result.Reason != metav1.StatusReasonAlreadyExists {
		t.Errorf("answered %+v, want a refusal that is tried again like any other", resp.Result)
	}
	if diff := cmp.Diff([]string{"enforce c1 TemplateMismatch python"}, h.denied); diff != "" || len(h.repaired) > 0 {
		t.Errorf("told of repairs %v, of denials (-want,+got):\n%s", h.repaired, diff)
	}
	if got := testutil.ToFloat64(g.Metrics.cold.repairs.WithLabelValues("coldstart", repairRefused)); got != 1 {
		t.Errorf("%v refused repairs are counted, want 1", got)
	}
}

func TestNobodyWantsToKnowWhichPoolIsSkipped(t *testing.T) {
	g := guardOn(t, &fakePlatform{facts: facts(func(*platform.Facts) {})}, settings.Enforce, &hints{})
	if resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil, builders.MakeColdStart(claim, template).Obj())); !resp.Allowed {
		t.Errorf("a fresh cold start is denied: %v", resp.Result)
	}
}

// A birth is for no claim: there is nobody to tell.
func TestNobodyIsToldOfARefusedBirth(t *testing.T) {
	var h hints
	stale := facts(func(f *platform.Facts) { f.Member.Template = "other" })
	g := guardOn(t, &fakePlatform{facts: stale}, settings.Enforce, &h)
	resp := g.Handle(t.Context(), request(t, admissionv1.Create, nil, builders.MakeMember(pool, template).Obj()))
	if resp.Allowed || len(h.denied) > 0 || len(h.refused) > 0 {
		t.Errorf("allowed %t, told %v and %v", resp.Allowed, h.denied, h.refused)
	}
}

func TestWhatAuditAnnotationsSay(t *testing.T) {
	type audited struct{ Verdict, Reason string }
	cases := map[string]struct {
		change func(*platform.Facts)
		err    error
		want   audited
	}{
		"fresh":     {func(*platform.Facts) {}, nil, audited{"allow", "Fresh"}},
		"refused":   {func(f *platform.Facts) { f.Pod.Deleting = true }, nil, audited{"deny", "PodTerminating"}},
		"undecided": {func(*platform.Facts) {}, errors.New("etcd is away"), audited{"error", "Undecided"}},
		"tolerated": {func(f *platform.Facts) {
			f.Pool.Strategy, f.Template.Unrenderable = freshness.OnReplenish, "no env"
		}, nil, audited{"tolerate", "UnknownRevision"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := guardOn(t, &fakePlatform{facts: facts(tc.change), err: tc.err}, settings.Enforce, &hints{}).Handle(t.Context(), bindRequest(t))
			got := audited{resp.AuditAnnotations["verdict"], resp.AuditAnnotations["reason"]}
			if got != tc.want {
				t.Errorf("said %v, want %v", got, tc.want)
			}
		})
	}
}

// Whoever binds while nobody understands a pool has to know; whoever chose stale
// members, or builds new ones, has nothing to do about it.
func TestWhoIsWarnedWhileAttributionIsSuspended(t *testing.T) {
	content, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	unknown := func(f *platform.Facts) {
		f.Member.Content, f.Member.Proposed, f.Pool.Suspended = content, content, f.Template.Hash
	}
	birth := request(t, admissionv1.Create, nil, builders.MakeMember(pool, template).Obj())
	cases := map[string]struct {
		change func(*platform.Facts)
		req    admission.Request
		want   int
	}{
		"a bind":                      {unknown, bindRequest(t), 1},
		"a bind of what is known":     {func(*platform.Facts) {}, bindRequest(t), 0},
		"where stale ones are served": {func(f *platform.Facts) { unknown(f); f.Pool.Strategy = freshness.OnReplenish }, bindRequest(t), 0},
		"a birth":                     {func(f *platform.Facts) { unknown(f); f.Pod = nil }, birth, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := guardOn(t, &fakePlatform{facts: facts(tc.change)}, settings.Enforce, &hints{}).Handle(t.Context(), tc.req)
			if !resp.Allowed || len(resp.Warnings) != tc.want {
				t.Errorf("allowed %t, warnings %v, want %d", resp.Allowed, resp.Warnings, tc.want)
			}
		})
	}
}

func TestDenialsNameTwoRevisionsOnlyWhereTheyDiffer(t *testing.T) {
	content, err := agentsandbox.RenderMember(template)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(*platform.Facts)
		want   bool
	}{
		"a stale member":         {func(f *platform.Facts) { f.Member.Content, f.Member.Proposed = content, content }, true},
		"a dead one":             {func(f *platform.Facts) { f.Pod.Deleting = true }, false},
		"a fresh one of too old": {func(f *platform.Facts) { f.Member.Created, f.Pool.Restarted = time.Unix(1, 0), time.Unix(2, 0) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := guardOn(t, &fakePlatform{facts: facts(tc.change)}, settings.Enforce, &hints{}).Handle(t.Context(), bindRequest(t))
			if got := strings.Contains(resp.Result.Message, "in force is v1-new"); resp.Allowed || got != tc.want {
				t.Errorf("allowed %t: %s", resp.Allowed, resp.Result.Message)
			}
		})
	}
}
