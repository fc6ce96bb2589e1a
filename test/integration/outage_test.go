package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// With Freshbind stopped, everything goes on but binds and cold starts; these
// wait, and catch up when it is back.
func TestWebhookStopped(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.Recreate})
	other := s.pool(scenario.Pool{Name: "other", Replicas: 2, Strategy: scenario.Recreate})
	byPool, asking := w.auditedPool(t)
	byPool.closes(asking)
	s.claim(p, "before")
	s.full(p, "")
	s.must(w.Guard.Stop())

	members := s.full(p, "")
	s.patch(upstream.Sandboxes, members[0].Name, `{"metadata":{"labels":{"somebody":"else"}}}`)
	s.must(s.DeleteClaims(t.Context(), "before"))
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"replicas":3}}`)
	p.Replicas = 3
	s.full(p, "")
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"replicas":5}}`)
	p.Replicas = 5
	s.full(p, "")
	s.must(s.Resource(upstream.SandboxWarmPools).Delete(t.Context(), other.Name, metav1.DeleteOptions{}))
	s.image(p, "sandbox:v2")

	byPool.closed(asking)
	claims, asked := scenario.Names("w", 4), scenario.Names("a", 3)
	s.waiting(p, claims)
	byPool.waiting(asking, asked)
	if sum, _ := s.judged(); sum.Classes["Stale"] > 0 || sum.Warm+sum.Cold != 1 {
		t.Errorf("something was bound while nobody judged: %v", sum)
	}
	if sum, _ := byPool.judged(); sum.Warm+sum.Cold > 0 {
		t.Errorf("something was bound for a pool that enforces while nobody judged: %v", sum)
	}

	back := time.Now()
	s.must(w.Guard.Start(t.Context()))
	s.must(s.WaitClaims(t.Context(), within, claims...))
	byPool.must(byPool.WaitClaims(t.Context(), within, asked...))
	t.Logf("all waiting claims ready %.1f s after the start of Freshbind", time.Since(back).Seconds())
	s.woken(claims)
	byPool.woken(asked)
	s.full(p, "sandbox:v2")
	s.fresh(5)
}

// closes has the pool enforce, and waits until the webhooks are told of it.
func (s *stage) closes(p scenario.Pool) {
	s.t.Helper()
	kube, err := kubernetes.NewForConfig(s.w.Cluster.Config())
	s.must(err)
	s.annotate(p, settings.EnforcementKey, "enforce")
	s.eventually("webhooks that fail closed", func(ctx context.Context) (string, bool) {
		c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhooks.ConfigurationName, metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && strings.Contains(string(marshal(c.Webhooks)), `"`+s.Name+`"`)
	})
}

// closed waits until cold starts in the namespace wait for Freshbind, which is stopped.
func (s *stage) closed(p scenario.Pool) {
	s.t.Helper()
	cold := builders.MakeColdStart(s.Claim(p, "nobody"), s.get(upstream.SandboxTemplates, p.Template)).Obj()
	s.eventually("cold starts that wait for Freshbind", func(ctx context.Context) (string, bool) {
		_, err := s.Resource(upstream.Sandboxes).Create(ctx, cold, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), apierrors.IsInternalError(err)
	})
}

// waiting makes claims, each when the one before has begun to wait, so that they do not all
// come back at one time, and waits until every one is left alone for longer than a start of
// Freshbind takes. The pause doubles with every failure: after one of 10 s, a claim that
// nobody wakes waits for 20 s.
func (s *stage) waiting(p scenario.Pool, claims []string) {
	s.t.Helper()
	for _, claim := range claims {
		s.must(s.CreateClaims(s.t.Context(), p, claim))
		s.backsOff(3*time.Second, claim)
	}
	s.backsOff(10*time.Second, claims...)
}

// backsOff waits until the last pause of each claim was so long.
func (s *stage) backsOff(pause time.Duration, claims ...string) {
	s.t.Helper()
	s.eventually("every claim backed off far enough", func(context.Context) (string, bool) {
		pauses := s.w.lastPauses(s.t, s.Name)
		return fmt.Sprint(pauses), !slices.ContainsFunc(claims, func(claim string) bool { return pauses[claim] < pause })
	})
}

// woken shows that some claim was. The pause of one can end just before it is woken.
func (s *stage) woken(claims []string) {
	s.t.Helper()
	if !slices.ContainsFunc(claims, func(claim string) bool {
		return s.get(upstream.SandboxClaims, claim).GetAnnotations()[settings.RequeuedAtKey] != ""
	}) {
		s.t.Errorf("no claim of namespace %s was woken: each has waited for the end of its own pause", s.Name)
	}
}

// lastPauses is the time between the last two failed passes over each claim of
// the namespace, as agent-sandbox logs them, to the second.
func (w *world) lastPauses(t *testing.T, namespace string) map[string]time.Duration {
	t.Helper()
	log, err := os.ReadFile(w.Controllers.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	last, pauses := map[string]time.Time{}, map[string]time.Duration{}
	for line := range strings.Lines(string(log)) {
		var e struct {
			TS         time.Time `json:"ts"`
			Msg        string    `json:"msg"`
			Controller string    `json:"controller"`
			Namespace  string    `json:"namespace"`
			Name       string    `json:"name"`
		}
		// The last line may be half written.
		if json.Unmarshal([]byte(line), &e) != nil || e.Msg != "Reconciler error" || e.Controller != "sandboxclaim" || e.Namespace != namespace {
			continue
		}
		if before, ok := last[e.Name]; ok {
			pauses[e.Name] = e.TS.Sub(before)
		}
		last[e.Name] = e.TS
	}
	return pauses
}

// The pool's controller sees the template when births have been refused and all
// claims are served. It may lose the members it has, and bear none that is stale.
func TestLatePoolController(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 20, Strategy: scenario.Recreate})
	see := s.hold(upstream.SandboxTemplates)
	s.image(p, "sandbox:v2")
	names := scenario.Names("c", 5)
	s.must(s.CreateClaims(t.Context(), p, names...))
	s.must(s.WaitClaims(t.Context(), within, names...))
	s.eventually("births refused", func(context.Context) (string, bool) {
		n := w.metric(t, "freshbind_bind_verdicts_total", `operation="birth"`, `verdict="deny"`)
		return fmt.Sprint(n), n > 0
	})
	see()
	members := s.full(p, "sandbox:v2")
	sum := s.fresh(5)
	if excess := s.excess(); sum.MemberDeletes > p.Replicas+sum.StaleBirths+excess {
		t.Errorf("%d members were deleted, want at most the %d there were, the %d that were born stale and %d too many", sum.MemberDeletes, p.Replicas, sum.StaleBirths, excess)
	}
	// Its hook is one that fails open.
	if unanswered := int(w.unanswered(t, "birth.freshbind.dev")); sum.StaleBirths > unanswered {
		t.Errorf("%d stale members were born, and %d births had no answer in time", sum.StaleBirths, unanswered)
	}
	// Members that equal an older revision are understood, however many they are.
	if n := s.eventsOf("AttributionSuspended"); n > 0 {
		t.Errorf("attribution was suspended %d times", n)
	}
	t.Logf("%d members deleted, %d born, %d stand there", sum.MemberDeletes, sum.Births, len(members))
}

// The serving certificate is replaced, CA and all, while binds go on.
func TestCertificateReplaced(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	s.claim(p, "before")
	old, err := w.Guard.ServedCertificate()
	s.must(err)
	s.must(w.Guard.ReplaceCertificate(t.Context()))
	i := 0
	s.eventually("the new certificate being served", func(ctx context.Context) (string, bool) {
		// Binds go on all the while, whichever certificate is served.
		i++
		s.claim(p, fmt.Sprintf("during-%d", i))
		now, err := w.Guard.ServedCertificate()
		return fmt.Sprint(err), err == nil && now != old
	})
	s.claim(p, "after")
	s.fresh(i + 2)
}

// maxAttempts is how often something is tried that a machine can be too slow for.
const maxAttempts = 10

// A claim's sandbox survives the delete that its former pool's controller meant
// for an idle member; its own end is not held up.
func TestAClaimsSandboxIsNotKilledByThePool(t *testing.T) {
	w := sharedWorld(t)
	t.Run("the namespace enforces", func(t *testing.T) {
		s := w.enforced(t)
		s.notKilledByThePool(s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate}))
	})
	t.Run("the pool enforces", func(t *testing.T) {
		s, p := w.auditedPool(t)
		s.annotate(p, settings.EnforcementKey, "enforce")
		s.state(p, "Complete", "")
		s.notKilledByThePool(p)
	})
}

// Whether somebody has a member is certain, and how its namespace was enforced is known,
// while nobody can read that: the API server holds back those reads.
func TestAClaimsSandboxIsKeptWhileTheModeCannotBeRead(t *testing.T) {
	t.Parallel()
	var proxy *controlplane.Proxy
	w := ownWorld(t, scenario.WorldOptions{Reach: scenario.Through(&proxy)})
	audited, s := w.namespace(t, nil), w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	of := audited.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	s.claim(p, "c")
	audited.claim(of, "c")
	// Freshbind reads each of them by itself to tell the mode.
	proxy.HoldRequests(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/it-") && strings.Count(r.URL.Path, "/") == 4
	})
	deletes := func(s *stage) error {
		sandbox, err := s.SandboxOf(t.Context(), "c")
		s.must(err)
		return w.controllers(t).Resource(upstream.Sandboxes.WithVersion(s.Version)).Namespace(s.Name).
			Delete(t.Context(), sandbox.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
	// The hook fails open: where the machine has more to do, a delete passes once.
	s.eventually("the delete of a claim's sandbox refused", func(context.Context) (string, bool) {
		err := deletes(s)
		return fmt.Sprint(err), isNotFound(err)
	})
	s.must(deletes(audited))
}

func (s *stage) notKilledByThePool(p scenario.Pool) {
	t := s.t
	t.Helper()
	controllers := s.w.controllers(t).Resource(upstream.Sandboxes.WithVersion(s.Version)).Namespace(s.Name)
	var sandbox *unstructured.Unstructured
	for i := 1; ; i++ {
		claim := fmt.Sprintf("c%d", i)
		s.claim(p, claim)
		var err error
		sandbox, err = s.SandboxOf(t.Context(), claim)
		s.must(err)
		before := s.w.unprotected(t)
		err = controllers.Delete(t.Context(), sandbox.GetName(), metav1.DeleteOptions{})
		if err == nil && i < maxAttempts && s.w.unprotected(t) > before {
			t.Logf("the sandbox of %s was deleted because Freshbind did not answer in time, as failurePolicy Ignore has it: another claim is tried", claim)
			continue
		}
		if !isNotFound(err) {
			t.Errorf("delete by the pool's controller: %v, want not found", err)
		}
		break
	}
	if got := s.get(upstream.Sandboxes, sandbox.GetName()); got.GetDeletionTimestamp() != nil || got.GetUID() != sandbox.GetUID() {
		t.Error("the claim's sandbox is being deleted")
	}
	uid := sandbox.GetUID()
	s.must(controllers.Delete(t.Context(), sandbox.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))

	// A pool that has made more than it should takes one away itself, and nobody knows which.
	s.eventually("an idle member deleted by its pool's controller", func(ctx context.Context) (string, bool) {
		err := controllers.Delete(ctx, s.full(p, "")[0].Name, metav1.DeleteOptions{})
		if err != nil && !isNotFound(err) {
			t.Errorf("delete of an idle member: %v", err)
		}
		return fmt.Sprint(err), !isNotFound(err)
	})
}

// A sandbox that had a claim carries its mark for good and never goes back.
func TestAUsedSandboxNeverGoesBack(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	s.claim(p, "c1")
	s.neverGoesBack(p, "c1")
}

// neverGoesBack tries to put a claim's sandbox back into its pool, once Freshbind has
// noted whose it is.
func (s *stage) neverGoesBack(p scenario.Pool, claim string) {
	s.t.Helper()
	sandbox, err := s.SandboxOf(s.t.Context(), claim)
	s.must(err)
	uid := s.get(upstream.SandboxClaims, claim).GetUID()
	s.eventually("the mark", func(context.Context) (string, bool) {
		mark := s.get(upstream.Sandboxes, sandbox.GetName()).GetAnnotations()[settings.BoundToKey]
		return mark, mark == string(uid)
	})
	pool := s.get(upstream.SandboxWarmPools, p.Name)
	s.eventually("giving a used sandbox back is judged", func(ctx context.Context) (string, bool) {
		back := builders.SandboxFrom(s.get(upstream.Sandboxes, sandbox.GetName())).Owners(builders.ControllerRef(pool)).
			Label(builders.LabelPool, builders.NameHash(p.Name)).NoLabel(builders.LabelClaimUID).Obj()
		_, err := s.Resource(upstream.Sandboxes).Update(ctx, back, updateOptions)
		if !saysNothing(err) && !isInvalid(err) {
			s.t.Errorf("giving a used sandbox back: %v, want it refused", err)
		}
		return fmt.Sprint(err), !saysNothing(err)
	})
}
