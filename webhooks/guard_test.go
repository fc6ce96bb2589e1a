package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	template = builders.MakeTemplate("ns", "python").Obj()
	pool     = builders.MakePool("ns", "python").Obj()
	claim    = builders.MakeClaim("ns", "c1").Obj()
	member   = builders.MakeMember(pool, template).Name("python-abc").Obj()
)

// fakePlatform classifies and answers as agent-sandbox does, and takes the
// snapshot it is given.
type fakePlatform struct {
	agentsandbox.Platform
	facts platform.Facts
	err   error
	// asked is the last write that a snapshot was taken for.
	asked platform.Write
}

func (f *fakePlatform) Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error) {
	f.asked = w
	if f.err != nil {
		return platform.Facts{}, f.err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		return platform.Facts{}, errors.New("the verdict has no deadline")
	}
	f.facts.Operation = w.Operation
	f.facts.ClaimRef = w.Claim
	if w.Operation == freshness.ForeignController {
		// Its name is read; the write names something else.
		f.facts.ClaimRef.Name = claim.GetName()
	}
	facts := f.facts
	if w.Operation == freshness.ColdStart {
		// Its Pod comes later.
		facts.Pod = nil
	}
	return facts, nil
}

// hints records what the guard tells the controllers.
type hints struct{ refused, tryAgain, denied, repaired []string }

func (h *hints) Refused(m *unstructured.Unstructured, fault freshness.Fault) {
	whose := map[freshness.Fault]string{freshness.FaultMember: "its own", freshness.FaultClaim: "the claim's", freshness.FaultNobody: "nobody's"}
	h.refused = append(h.refused, m.GetName()+" "+whose[fault])
}

func (h *hints) TryAgain(namespace, name string) {
	h.tryAgain = append(h.tryAgain, namespace+"/"+name)
}

func (h *hints) Repaired(w platform.Write, note string) {
	h.repaired = append(h.repaired, w.Claim.Name+" "+note)
}

func (h *hints) Denied(d Denial) {
	pool := ""
	if d.Pool != nil {
		pool = d.Pool.Name
	}
	h.denied = append(h.denied, string(d.Mode)+" "+d.Claim.Name+" "+string(d.Reason)+" "+pool)
}

// modes are those of an API server, and of a cache, that has namespace ns in this
// mode; readErr is that of the API server.
func modes(t *testing.T, mode settings.Mode, readErr error) *Modes {
	t.Helper()
	labels := map[string]string{settings.EnforcementKey: string(mode)}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: labels}}).Build()
	live := func(context.Context, string) (map[string]string, error) {
		if readErr != nil {
			return nil, readErr
		}
		return labels, nil
	}
	return &Modes{Live: live, Cached: platform.CachedNamespaceLabels(cached), Defaults: settings.Defaults{Mode: settings.Audit}}
}

// poolsSaying is a cache of one pool, which says that of its enforcement.
func poolsSaying(enforcement string) func(context.Context, string) ([]*unstructured.Unstructured, error) {
	return func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
		if ctx.Err() != nil || namespace != "ns" {
			return nil, fmt.Errorf("namespace %q, or out of time: %w", namespace, ctx.Err())
		}
		return []*unstructured.Unstructured{builders.PoolFrom(pool).Annotation(settings.EnforcementKey, enforcement).Obj()}, nil
	}
}

func bindRequest(t *testing.T) admission.Request {
	t.Helper()
	return request(t, admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
}

func request(t *testing.T, op admissionv1.Operation, old, obj *unstructured.Unstructured) admission.Request {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: op, Namespace: "ns", Name: obj.GetName(), Object: raw(t, obj),
		Kind: metav1.GroupVersionKind(obj.GroupVersionKind()),
	}}
	if old != nil {
		req.OldObject = raw(t, old)
	}
	return req
}

func raw(t *testing.T, obj *unstructured.Unstructured) runtime.RawExtension {
	t.Helper()
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: b}
}

// facts of a bind that nothing speaks against, but for what change does.
func facts(change func(*platform.Facts)) platform.Facts {
	f := platform.Facts{Snapshot: freshness.Snapshot{
		Member: freshness.Member{
			Name: "python-abc", UID: "m", Generation: 1,
			Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "python", UID: "p"},
		},
		Claim:    &freshness.Claim{UID: string(claim.GetUID()), Pool: "python"},
		Pool:     &freshness.Pool{Name: "python", UID: "p", Template: "python", Strategy: freshness.Recreate},
		Template: &freshness.Template{Name: "python", Hash: "v1-new"},
		Pod:      &freshness.Pod{ControllerUID: "m"},
	}}
	change(&f)
	return f
}

func TestGuard(t *testing.T) {
	fresh := facts(func(*platform.Facts) {})
	dead := facts(func(f *platform.Facts) { f.Pod.Deleting = true })
	foreign := facts(func(f *platform.Facts) { f.Claim.Pool = "other" })
	tightened := facts(func(f *platform.Facts) { f.Pod.Deleting = true; f.Enforcement = "enforce" })
	broken := errors.New("etcd is away")

	type want struct {
		Allowed  bool
		Code     int32
		Reason   metav1.StatusReason
		Verdict  string
		Warned   bool
		Refused  []string
		Waiting  []string
		Denied   []string
		Observed int
	}
	cases := map[string]struct {
		facts   platform.Facts
		err     error
		mode    settings.Mode
		modeErr error
		// pool is what the one pool of the namespace says, by the cache, label what the
		// member does.
		pool, label string
		failOpen    bool
		dryRun      bool
		want        want
	}{
		"fresh":                         {facts: fresh, mode: settings.Enforce, want: want{Allowed: true, Code: 200, Verdict: "allow", Observed: 1}},
		"the member's fault":            {facts: dead, mode: settings.Enforce, want: want{Code: 404, Reason: metav1.StatusReasonNotFound, Verdict: "deny", Refused: []string{"python-abc its own"}, Denied: []string{"enforce c1 PodTerminating python"}, Observed: 1}},
		"the claim's fault":             {facts: foreign, mode: settings.Enforce, want: want{Code: 409, Reason: metav1.StatusReasonConflict, Verdict: "deny", Refused: []string{"python-abc the claim's"}, Denied: []string{"enforce c1 PoolMismatch python"}, Observed: 1}},
		"audited, not denied":           {facts: dead, mode: settings.Audit, want: want{Allowed: true, Code: 200, Verdict: "deny", Denied: []string{"audit c1 PodTerminating python"}, Observed: 1}},
		"nothing said is audit":         {facts: dead, mode: "", want: want{Allowed: true, Code: 200, Verdict: "deny", Denied: []string{"audit c1 PodTerminating python"}, Observed: 1}},
		"a mode nobody knows is audit":  {facts: dead, mode: "enforced", want: want{Allowed: true, Code: 200, Verdict: "deny", Denied: []string{"audit c1 PodTerminating python"}, Observed: 1}},
		"tightened by the pool":         {facts: tightened, mode: settings.Audit, want: want{Code: 404, Reason: metav1.StatusReasonNotFound, Verdict: "deny", Refused: []string{"python-abc its own"}, Denied: []string{"enforce c1 PodTerminating python"}, Observed: 1}},
		"dry run leaves nothing behind": {facts: dead, mode: settings.Enforce, dryRun: true, want: want{Code: 404, Reason: metav1.StatusReasonNotFound, Verdict: "deny"}},
		"undecided":                     {err: broken, mode: settings.Enforce, want: want{Code: 500, Reason: "", Verdict: "error", Waiting: []string{"ns/c1"}, Observed: 1}},
		"the member's fault, all open":  {facts: dead, mode: settings.Enforce, failOpen: true, want: want{Code: 404, Reason: metav1.StatusReasonNotFound, Verdict: "deny", Refused: []string{"python-abc its own"}, Denied: []string{"enforce c1 PodTerminating python"}, Observed: 1}},
		"undecided, failing open":       {err: broken, mode: settings.Enforce, failOpen: true, want: want{Allowed: true, Code: 200, Verdict: "error", Warned: true, Waiting: []string{"ns/c1"}, Observed: 1}},
		"undecided, audited":            {err: broken, mode: settings.Audit, want: want{Allowed: true, Code: 200, Verdict: "error", Observed: 1}},
		"undecided, the pool enforces":  {err: broken, mode: settings.Audit, pool: "enforce", want: want{Code: 500, Verdict: "error", Waiting: []string{"ns/c1"}, Observed: 1}},
		"undecided, the pool audits":    {err: broken, mode: settings.Audit, pool: "audit", want: want{Allowed: true, Code: 200, Verdict: "error", Observed: 1}},
		"undecided, the pool enforces, whatever the member says": {err: broken, mode: settings.Audit, pool: "enforce", label: "audit", want: want{Code: 500, Verdict: "error", Waiting: []string{"ns/c1"}, Observed: 1}},
		"undecided, the member says so":                          {err: broken, mode: settings.Audit, label: "enforce", want: want{Code: 500, Verdict: "error", Waiting: []string{"ns/c1"}, Observed: 1}},
		"judged, another pool enforces":                          {facts: dead, mode: settings.Audit, pool: "enforce", want: want{Allowed: true, Code: 200, Verdict: "deny", Denied: []string{"audit c1 PodTerminating python"}, Observed: 1}},
		"judged, and said before only":                           {facts: dead, mode: settings.Audit, label: "enforce", want: want{Allowed: true, Code: 200, Verdict: "deny", Denied: []string{"audit c1 PodTerminating python"}, Observed: 1}},
		"mode unreadable, was enforced":                          {facts: dead, mode: settings.Enforce, modeErr: broken, want: want{Code: 500, Verdict: "error", Waiting: []string{"ns/c1"}, Observed: 1}},
		"mode unreadable, was audited":                           {facts: dead, mode: settings.Audit, modeErr: broken, want: want{Allowed: true, Code: 200, Verdict: "error", Observed: 1}},
		"mode unreadable, fresh in any":                          {facts: fresh, mode: settings.Enforce, modeErr: broken, want: want{Allowed: true, Code: 200, Verdict: "allow", Observed: 1}},
		"the pool's own mode is no read":                         {facts: tightened, mode: settings.Audit, modeErr: broken, want: want{Code: 404, Reason: metav1.StatusReasonNotFound, Verdict: "deny", Refused: []string{"python-abc its own"}, Denied: []string{"enforce c1 PodTerminating python"}, Observed: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h hints
			reg := prometheus.NewRegistry()
			g := &Guard{
				Platform: &fakePlatform{facts: tc.facts, err: tc.err},
				Modes:    modes(t, tc.mode, tc.modeErr), Metrics: NewMetrics(reg), Observer: &h,
				Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute, FailOpen: tc.failOpen,
			}
			g.Modes.Pools = poolsSaying(tc.pool)
			old := builders.SandboxFrom(member).Label(settings.EnforcementKey, tc.label).Obj()
			req := request(t, admissionv1.Update, old, builders.Bound(old, claim, template).Obj())
			req.DryRun = ptr.To(tc.dryRun)
			resp := g.Handle(t.Context(), req)
			observed, err := testutil.GatherAndCount(reg, "freshbind_bind_verdicts_total")
			if err != nil {
				t.Fatal(err)
			}
			got := want{
				Allowed: resp.Allowed, Code: resp.Result.Code, Reason: resp.Result.Reason,
				Verdict: resp.AuditAnnotations["verdict"], Warned: len(resp.Warnings) > 0,
				Refused: h.refused, Waiting: h.tryAgain, Denied: h.denied, Observed: observed,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Handle() (-want,+got):\n%s\n%s", diff, resp.Result.Message)
			}
			if resp.Result.Details != nil && resp.Result.Details.RetryAfterSeconds != 0 {
				t.Error("retryAfterSeconds makes client-go sleep inside the controller's worker")
			}
		})
	}
}

// A stored object may carry the self-test's key; only a dry run is one.
func TestGuardTakesOnlyDryRunsForSelfTests(t *testing.T) {
	dead := facts(func(f *platform.Facts) { f.Pod.Deleting = true })
	for name, tc := range map[string]struct{ dryRun, asked, want bool }{
		"a write with the key":      {false, true, true},
		"a dry run without the key": {true, false, true},
		"a self-test":               {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Guard{
				Platform: &fakePlatform{facts: dead}, Modes: modes(t, settings.Audit, nil), Metrics: NewMetrics(prometheus.NewRegistry()),
				Observer: &hints{}, Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
			}
			bound := builders.Bound(member, claim, template)
			if tc.asked {
				bound.Annotation(settings.SelfTestKey, "true")
			}
			req := request(t, admissionv1.Update, member, bound.Obj())
			req.DryRun = ptr.To(tc.dryRun)
			if resp := g.Handle(t.Context(), req); resp.Allowed != tc.want {
				t.Errorf("allowed is %t, want %t: %v", resp.Allowed, tc.want, resp.Result)
			}
		})
	}
}

func TestGuardLetsPassWhatIsNotItsOwn(t *testing.T) {
	g := &Guard{Platform: &fakePlatform{err: errors.New("must not be asked")}}
	resp := g.Handle(t.Context(), request(t, admissionv1.Update, member, builders.SandboxFrom(member).Label("a", "b").Obj()))
	if !resp.Allowed {
		t.Errorf("a label change is denied: %v", resp.Result)
	}
}

func TestGuardRefusesWhatItCannotDecode(t *testing.T) {
	cases := map[string]struct{ body, want string }{
		"no object": {"", "the request holds no object"},
		"no JSON":   {"{", "unexpected end of JSON input"},
		"null":      {"null", "the request's object is null"},
		"a list":    {"[]", "cannot unmarshal array"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(tc.body)},
			}}
			resp := (&Guard{Platform: &fakePlatform{}}).Handle(t.Context(), req)
			if resp.Allowed || resp.Result.Code != 400 || !strings.Contains(resp.Result.Message, tc.want) {
				t.Errorf("Handle() = allowed %t, code %d: %s; want a 400: %s", resp.Allowed, resp.Result.Code, resp.Result.Message, tc.want)
			}
		})
	}
}
