package integration

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var eventResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// Claims that come right after an update are ready while no controller knows of it,
// in every release.
func TestColdStartsAreRepaired(t *testing.T) {
	for _, version := range upstream.Releases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			coldStartsAreRepaired(t, releaseWorld(t, version))
		})
	}
}

func coldStartsAreRepaired(t *testing.T, w *world) {
	s := w.enforced(t)
	beta := s.Version != builders.V1Alpha1
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate}, func(b *builders.Template) {
		b.EnvPolicy("Allowed").VolumeClaim("scratch", "1Gi").PodSpec("old", "hostname")
		if beta {
			b.VolumeClaimPolicy("Allowed")
		}
	})
	count := func(result string) float64 {
		return w.metric(t, "freshbind_repairs_total", `operation="coldstart"`, `result="`+result+`"`)
	}
	refusals := func() float64 {
		return w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `verdict="deny"`)
	}
	admitted, refused, denied, unanswered, unstamped := count("admitted"), count("refused"), refusals(), w.turnedDown(t, ".freshbind.dev"), w.unstamped(t)
	see := s.hold(upstream.SandboxTemplates)
	live := builders.TemplateFrom(s.get(upstream.SandboxTemplates, p.Template)).Image("sandbox:v2").
		Unset("spec", "podTemplate", "spec", "hostname").Service(true).VolumeClaim("data", "2Gi").Obj()
	_, err := s.Resource(upstream.SandboxTemplates).Update(t.Context(), live, metav1.UpdateOptions{})
	s.must(err)
	names := append(scenario.Names("plain", 4), "env")
	s.must(s.CreateClaims(t.Context(), p, names[:4]...))
	own := s.Claim(p, "env")
	if !beta {
		own = builders.MakeClaimV1Alpha1(s.Name, "env", p.Template, "none").Obj()
	}
	s.must(s.Create(t.Context(), builders.ClaimFrom(own).Env("", "MODE", "fast").Obj()))
	if beta {
		names = append(names, "volume")
		s.must(s.Create(t.Context(), builders.ClaimFrom(s.Claim(p, "volume")).VolumeClaim("mine", "3Gi").Obj()))
	}
	s.must(s.WaitClaims(t.Context(), within, names...))

	repaired := map[string]types.UID{}
	for _, name := range names {
		sandbox, err := s.SandboxOf(t.Context(), name)
		s.must(err)
		repaired[name] = sandbox.GetUID()
		if got, want := builtLike(sandbox), wantedLike(name); !cmp.Equal(got, want) {
			t.Errorf("claim %s (-want,+got):\n%s", name, cmp.Diff(want, got))
		}
		if note := sandbox.GetAnnotations()[settings.RepairedKey]; !platform.IsRepaired(note) {
			t.Errorf("the sandbox of claim %s has the note %q", name, note)
		}
		pod, err := w.dynamic.Resource(podResource).Namespace(s.Name).Get(t.Context(), name, metav1.GetOptions{})
		s.must(err)
		if image := podImage(pod); image != "sandbox:v2" {
			t.Errorf("claim %s runs in a pod of %s", name, image)
		}
		s.waitEvent(name, "ColdStartRepaired")
	}
	n, again, stale := int(count("admitted")-admitted), count("refused")-refused, int(refusals()-denied)
	// One that was answered too late is tried, and counted, again. What could not be read in
	// time to repair it is refused, and repaired when it is tried again.
	late, unread := int(w.turnedDown(t, ".freshbind.dev")-unanswered), w.unstamped(t)-unstamped
	if n < len(names) || n > len(names)+late || again != 0 || stale > unread {
		t.Errorf("%d repaired, want %d; %v of them refused; %d cold starts refused, of which %d could not be read in time", n, len(names), again, stale, unread)
	}
	// Once agent-sandbox sees the template, nothing becomes of what was repaired. That
	// the pool is full of new members shows that it does.
	see()
	s.full(p, "sandbox:v2")
	for name, uid := range repaired {
		sandbox, err := s.SandboxOf(t.Context(), name)
		s.must(err)
		if sandbox.GetUID() != uid || sandbox.GetDeletionTimestamp() != nil || !cmp.Equal(builtLike(sandbox), wantedLike(name)) {
			t.Errorf("claim %s has another sandbox once the template was seen: %s (%s, deleted at %v), built like %+v, want %s, built like %+v",
				name, sandbox.GetName(), sandbox.GetUID(), sandbox.GetDeletionTimestamp(), builtLike(sandbox), uid, wantedLike(name))
		}
	}
	s.fresh(len(names))
}

// like is what of a sandbox is to be of the new template, and of the claim.
type like struct {
	Image, Env string
	Host       bool
	Volumes    []string
	Service    bool
}

func wantedLike(claim string) like {
	want := like{Image: "sandbox:v2", Volumes: []string{"scratch", "data"}, Service: true}
	switch claim {
	case "env":
		want.Env = "MODE=fast"
	case "volume":
		want.Volumes = append(want.Volumes, "mine")
	}
	return want
}

func builtLike(sandbox *unstructured.Unstructured) like {
	var got like
	containers, _, _ := unstructured.NestedSlice(sandbox.Object, "spec", "podTemplate", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		got.Image, _ = container["image"].(string)
		env, _, _ := unstructured.NestedSlice(container, "env")
		for _, e := range env {
			entry, _ := e.(map[string]any)
			got.Env += fmt.Sprintf("%v=%v", entry["name"], entry["value"])
		}
	}
	_, got.Host, _ = unstructured.NestedString(sandbox.Object, "spec", "podTemplate", "spec", "hostname")
	volumes, _, _ := unstructured.NestedSlice(sandbox.Object, "spec", "volumeClaimTemplates")
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "metadata", "name")
		got.Volumes = append(got.Volumes, name)
	}
	got.Service, _, _ = unstructured.NestedBool(sandbox.Object, "spec", "service")
	return got
}

// waitEvent waits for an event on a claim.
func (s *stage) waitEvent(claim, reason string) {
	s.t.Helper()
	events := s.w.dynamic.Resource(eventResource).Namespace(s.Name)
	s.eventually("event "+reason+" on claim "+claim, func(ctx context.Context) (string, bool) {
		list, err := events.List(ctx, metav1.ListOptions{})
		s.must(err)
		var seen []string
		for _, e := range list.Items {
			about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			has, _, _ := unstructured.NestedString(e.Object, "reason")
			if about == claim {
				seen = append(seen, has)
			}
		}
		return strings.Join(seen, " "), slices.Contains(seen, reason)
	})
}

// Switched off for the pool, it is as it was: the claim waits for the cache.
func TestAPoolWithoutRepairWaitsForTheCache(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	s.patch(upstream.SandboxWarmPools, p.Name, `{"metadata":{"annotations":{"freshbind.dev/repair":"false"}}}`)
	see := s.hold(upstream.SandboxTemplates)
	s.image(p, "sandbox:v2")
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	s.waitEvent("c1", "StaleRevision")
	see()
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	sandbox, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)
	if note, ok := sandbox.GetAnnotations()[settings.RepairedKey]; ok {
		t.Errorf("the sandbox was repaired: %s", note)
	}
	s.fresh(1)
}

// What somebody else makes of a repaired sandbox is refused like any other write:
// the claim waits, nothing is bound, and each try is one.
func TestASpoiltRepairIsRefused(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	stop := s.spoil()
	release := s.hold(upstream.SandboxTemplates)
	s.image(p, "sandbox:v2")
	refused := func() float64 {
		return w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `verdict="deny"`, `reason="UnknownRevision"`)
	}
	before := refused()
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	s.eventually("what was spoilt refused again and again", func(context.Context) (string, bool) {
		n := refused() - before
		return fmt.Sprintf("%v refused", n), n >= 3
	})
	if _, err := s.Resource(upstream.Sandboxes).Get(t.Context(), "c1", metav1.GetOptions{}); !isNotFound(err) {
		t.Errorf("reading the sandbox of the claim: %v, want that there is none", err)
	}
	stop()
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	release()
	s.fresh(1)
}

// spoil adds a field to every repaired sandbox, as a webhook that comes after
// Freshbind's, until the function that it returns is called.
func (s *stage) spoil() (stop func()) {
	s.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		patch := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &patch,
			Patch: []byte(`[{"op":"add","path":"/spec/podTemplate/spec/hostname","value":"spoilt"}]`),
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // the API server has gone
	}))
	s.t.Cleanup(server.Close)
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hooks := s.kube().AdmissionregistrationV1().MutatingWebhookConfigurations()
	name := "zz-spoil-" + s.Name
	_, err := hooks.Create(s.t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "spoil.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Name}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{upstream.Sandboxes.Group}, APIVersions: []string{"*"}, Resources: []string{upstream.Sandboxes.Resource},
				},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "repaired", Expression: `'` + settings.RepairedKey + `' in object.metadata.?annotations.orValue({})`,
			}},
		}},
	}, createOptions)
	s.must(err)
	stop = sync.OnceFunc(func() {
		if err := hooks.Delete(context.WithoutCancel(s.t.Context()), name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	s.inForce("hostname")
	return stop
}

// What somebody adds to stale cold starts is not Freshbind's to overwrite, also where
// the pool allows for it: the claim waits for the cache.
func TestSomebodysEditIsNotRepaired(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	s.annotate(p, settings.InjectedPathsKey, "podTemplate.spec.hostname")
	s.inject("hostname", `"added"`)
	release := s.hold(upstream.SandboxTemplates)
	s.image(p, "sandbox:v2")
	refused := func() float64 {
		return w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `verdict="deny"`, `reason="StaleRevision"`)
	}
	reads := func() float64 { return w.metric(t, "freshbind_live_reads_total", `resource="sandboxclaims"`) }
	late := func() int { return w.unstamped(t) + int(w.turnedDown(t, ".freshbind.dev")) }
	lateBefore, before, readBefore := late(), refused(), reads()
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	s.waitEvent("c1", "StaleRevision")
	s.eventually("refused again and again", func(context.Context) (string, bool) {
		n := refused() - before
		return fmt.Sprintf("%v refused", n), n >= 10
	})
	// Once when it is stamped, and not again when it is judged a moment later. What was too late
	// has read it as well, or has not said so to the verdict.
	if read, n, late := reads()-readBefore, refused()-before, late()-lateBefore; read > n+3+float64(late) {
		t.Errorf("the claim was read %v times for %v refusals and %d late answers, want once for each", read, n, late)
	}
	release()
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	sandbox, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)
	added, _, _ := unstructured.NestedString(sandbox.Object, "spec", "podTemplate", "spec", "hostname")
	if note, ok := sandbox.GetAnnotations()[settings.RepairedKey]; ok || added != "added" {
		t.Errorf("the sandbox has the note %q and the added field %q, want no note, and the field", note, added)
	}
	s.fresh(1)
}

// A dry run shows the repair, and nothing comes of it.
func TestDryRunShowsTheRepair(t *testing.T) {
	w := sharedWorld(t)
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Name: "none", Strategy: scenario.Recreate})
	old := s.get(upstream.SandboxTemplates, p.Template)
	s.hold(upstream.SandboxClaims)
	s.image(p, "sandbox:v2")
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	before := w.metric(t, "freshbind_repairs_total")
	stale := builders.MakeColdStart(s.get(upstream.SandboxClaims, "c1"), old).Obj()
	var got *unstructured.Unstructured
	var err error
	w.inTime(t, func() {
		err = s.answered(func() (err error) {
			got, err = w.controllers(t).Resource(upstream.Sandboxes.WithVersion(s.Version)).Namespace(s.Name).
				Create(t.Context(), stale, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}, stampHooks...)
	s.must(err)
	if note := got.GetAnnotations()[settings.RepairedKey]; !platform.IsRepaired(note) || scenario.ImageOf(got) != "sandbox:v2" {
		t.Errorf("shown with image %s and the note %q", scenario.ImageOf(got), note)
	}
	if n := w.metric(t, "freshbind_repairs_total"); n != before {
		t.Errorf("%v repairs are counted of a dry run", n-before)
	}
}

// Where the pool controller compares nothing with its template, a rollout waits for
// nobody's cache: what it gives birth to is repaired, and none of it is deleted.
func TestRolloutsNeedNoCurrentCache(t *testing.T) {
	for _, version := range upstream.Releases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := releaseWorld(t, version)
			s := w.enforced(t)
			p := s.rolling(4, settings.MaxUnavailableKey, "25%")
			was := s.state(p, "Complete", "")
			births := func(result string) float64 {
				return w.metric(t, "freshbind_repairs_total", `operation="birth"`, `result="`+result+`"`)
			}
			admitted, refused := births("admitted"), births("refused")
			// The hooks of births fail open: one that had no answer in time is stale, and one more is born.
			hooks := func() float64 {
				return w.unanswered(t, "birth.freshbind.dev") + w.unanswered(t, "stamp-birth.freshbind.dev")
			}
			unanswered, ready := hooks(), s.followReady(p)
			release := s.hold(upstream.SandboxTemplates)
			s.image(p, "sandbox:v2")
			s.state(p, "Complete", was)
			if low := ready.lowest(); low < 3 {
				t.Errorf("only %d members were ready at one time, want 3 or more", low)
			}
			members := s.full(p, "sandbox:v2")
			exact := hooks() == unanswered
			most := float64(4 + s.excess())
			if n := births("admitted") - admitted; exact && (n < 4 || n > most || births("refused") != refused) {
				t.Errorf("%v births repaired, %v of them refused, want 4 to %v and none", n, births("refused")-refused, most)
			}
			release()
			s.claim(p, scenario.Names("c", 2)...)
			left := s.full(p, "sandbox:v2")
			// Of this namespace alone: in others, pools may still fill up.
			sum, excess := s.fresh(2), s.excess()
			if least := 4 + 4 + sum.Warm; exact && hooks() == unanswered && (sum.Births < least || sum.Births > least+excess) {
				t.Errorf("%d members were born, want 4 at first, 4 in place of older ones, %d of those that claims took and up to %d too many; %d were deleted; after the rollout there were %v, and now there are %v",
					sum.Births, sum.Warm, excess, sum.MemberDeletes, members, left)
			}
			for _, m := range members {
				if !m.Shown {
					t.Errorf("member %s is hidden after the rollout", m.Name)
				}
			}
		})
	}
}
