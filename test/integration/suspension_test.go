package integration

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Somebody's webhook adds a field to every Sandbox. The pool's members equal no
// revision any more, and neither would their replacements: Freshbind stops, says
// so once, and names what to vouch for.
func TestAForeignWebhookSuspendsAttribution(t *testing.T) {
	const replicas = 6
	s := sharedWorld(t).enforced(t)
	s.inject("terminationGracePeriodSeconds", "7")
	deletes := s.countDeletes()
	p := s.pool(scenario.Pool{Replicas: replicas, Strategy: scenario.Recreate})

	var annotations map[string]string
	s.eventually("attribution suspended", func(context.Context) (string, bool) {
		annotations = s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		return annotations[settings.RolloutStatusKey], annotations[settings.AttributionKey] != ""
	})
	s.atRest(p)
	s.claim(p, scenario.Names("c", replicas)...)
	if sum, findings := s.judged(); sum.Warm != replicas {
		t.Errorf("with attribution suspended: %s, want all of %d warm: %v", sum, replicas, findings)
	}
	s.full(p, "")
	if n := deletes(); n > 2*replicas {
		t.Errorf("%d members deleted, want at most %d", n, 2*replicas)
	} else {
		t.Logf("%d members deleted until attribution was suspended", n)
	}
	s.eventually("an event that says so", func(context.Context) (string, bool) {
		n := s.eventsOf("AttributionSuspended")
		return fmt.Sprint(n), n > 0
	})
	if n := s.eventsOf("AttributionSuspended"); n != 1 {
		t.Errorf("%d events say so, want 1", n)
	}

	copied := regexp.MustCompile(settings.InjectedPathsKey + `: ([^"\\ ]+)`).FindStringSubmatch(annotations[settings.RolloutStatusKey])
	if copied == nil {
		t.Fatalf("the status names no path to copy: %s", annotations[settings.RolloutStatusKey])
	}
	before := deletes()
	s.annotate(p, settings.InjectedPathsKey, copied[1])
	s.eventually("attribution as before", func(context.Context) (string, bool) {
		annotations = s.get(upstream.SandboxWarmPools, p.Name).GetAnnotations()
		return annotations[settings.RolloutStatusKey], annotations[settings.AttributionKey] == "" && annotations[settings.RolloutReasonKey] == "MembersUpToDate"
	})
	s.claim(p, scenario.Names("d", replicas)...)
	if n := deletes() - before; n != 0 {
		t.Errorf("%d members deleted after their injected path was vouched for", n)
	}
	// What is really older is told from what is only injected.
	s.image(p, "sandbox:v2")
	s.claim(p, "e")
	sandbox, err := s.SandboxOf(t.Context(), "e")
	s.must(err)
	if image := scenario.ImageOf(sandbox); image != "sandbox:v2" {
		t.Errorf("a claim made after the update runs %s", image)
	}
}

// inject adds a field to the pod spec of every Sandbox that is created in the
// namespace, as a webhook would.
func (s *stage) inject(field, value string) {
	s.t.Helper()
	ctx, meta := s.t.Context(), metav1.ObjectMeta{Name: "inject-" + s.Name}
	registration := s.kube().AdmissionregistrationV1()
	fail := admissionregistrationv1.Fail
	_, err := registration.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &fail,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{upstream.Sandboxes.Group}, APIVersions: []string{"*"}, Resources: []string{upstream.Sandboxes.Resource},
					},
				},
			}}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{
					Expression: fmt.Sprintf(`[JSONPatch{op: "add", path: "/spec/podTemplate/spec/%s", value: %s}]`, field, value),
				},
			}},
		},
	}, createOptions)
	s.must(err)
	_, err = registration.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name,
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: s.Name},
			}},
		},
	}, createOptions)
	s.must(err)
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if err := registration.MutatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
		if err := registration.MutatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
	})
	s.inForce(field)
}

// inForce waits until whatever is created has the field.
func (s *stage) inForce(field string) {
	s.t.Helper()
	probe := builders.MakeMember(builders.MakePool(s.Name, "probe").Obj(), builders.MakeTemplate(s.Name, "probe").Obj()).
		Name("probe").Owners().Annotation(settings.RepairedKey, "v1-a -> v1-b").Obj()
	s.eventually("injection in force", func(ctx context.Context) (string, bool) {
		created, err := s.Resource(upstream.Sandboxes).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error(), false
		}
		value, found, _ := unstructured.NestedFieldNoCopy(created.Object, "spec", "podTemplate", "spec", field)
		return fmt.Sprint(value), found
	})
}

// countDeletes counts the members that go from now on, but for those too many.
func (s *stage) countDeletes() func() int {
	s.t.Helper()
	var n atomic.Int64
	before := s.excess()
	s.observe(s.Resource(upstream.Sandboxes), func(event watch.EventType, sandbox *unstructured.Unstructured) {
		if event == watch.Deleted && scenario.PoolOf(sandbox) != "" {
			n.Add(1)
		}
	})
	return func() int { return int(n.Load()) - (s.excess() - before) }
}

var excessLogged = regexp.MustCompile(`Deleting excess .*"namespace": ?"([^"]*)".*"count": ?(\d+)`)

// excess counts the members that agent-sandbox has deleted, or is about to, because it
// made too many: it lists a pool's members before it checks that its cache has all that
// it created (sandboxwarmpool_controller.go, v1.0.3: reconcilePool).
func (s *stage) excess() int {
	s.t.Helper()
	log, err := wholeLines(s.w.Controllers.LogPath(), 0)
	s.must(err)
	return excessIn(log, s.Name)
}

func excessIn(log []byte, namespace string) (n int) {
	for _, logged := range excessLogged.FindAllSubmatch(log, -1) {
		if string(logged[1]) == namespace {
			count, _ := strconv.Atoi(string(logged[2]))
			n += count
		}
	}
	return n
}

func TestExcessIn(t *testing.T) {
	for name, tc := range map[string]struct {
		log  string
		want int
	}{
		"JSON": {log: `{"msg":"Deleting excess sandboxes","SandboxWarmPool":{"name":"p","namespace":"it-1"},"namespace":"it-1","name":"p","count":2}`, want: 2},
		"text": {log: "2026-01-02T10:00:00Z\tINFO\tDeleting excess pods\t" +
			`{"SandboxWarmPool": {"name":"p","namespace":"it-1"}, "namespace": "it-1", "name": "p", "count": 10}`, want: 10},
		"another namespace": {log: `{"msg":"Deleting excess sandboxes","namespace":"it-11","count":2}`},
		"another message":   {log: `{"msg":"Creating new pool sandboxes","namespace":"it-1","count":2}`},
		"several": {log: `{"msg":"Deleting excess sandboxes","namespace":"it-1","count":2}` + "\n" +
			`{"msg":"Pool status","namespace":"it-1","count":4}` + "\n" + `{"msg":"Deleting excess sandboxes","namespace":"it-1","count":1}`, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excessIn([]byte(tc.log), "it-1"); got != tc.want {
				t.Errorf("excessIn() = %d, want %d", got, tc.want)
			}
		})
	}
}

// eventsOf counts the events of the namespace with a reason.
func (s *stage) eventsOf(reason string) int {
	s.t.Helper()
	list, err := s.kube().EventsV1().Events(s.Name).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	n := 0
	for _, e := range list.Items {
		if strings.EqualFold(e.Reason, reason) {
			n++
		}
	}
	return n
}
