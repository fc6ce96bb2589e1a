package webhooks

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/livereadtest"
)

// storedReads answers with objects by their resources and names.
type storedReads map[string]*unstructured.Unstructured

func (s storedReads) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	if obj := s[readOf(ref)]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
}

func readOf(ref liveread.Ref) string { return ref.GVR.Resource + "/" + ref.Name }

func (storedReads) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion("v1beta1"), nil
}

// Revisions has recorded none.
func (storedReads) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	return nil, nil
}

// The mode and floors of a namespace cost no round of reads of their own.
func TestRoundsOfReads(t *testing.T) {
	floor, err := settings.NewFloor(&metav1.LabelSelector{}, false, freshness.RollingUpdate)
	if err != nil {
		t.Fatal(err)
	}
	floors := settings.Floors{floor}
	enforcing := builders.PoolFrom(pool).Annotation(settings.EnforcementKey, "enforce").Obj()
	chosen := builders.ClaimFrom(claim).Names(member.GetName()).Obj()
	elsewhere := builders.SandboxFrom(member).Annotation("agents.x-k8s.io/sandbox-template-ref", "older").Obj()
	labelled := builders.SandboxFrom(member).Label(settings.EnforcementKey, "enforce").Obj()
	pod := builders.MakePod(member).Stored("node-1").Obj()
	start := builders.MakeColdStart(claim, template).Obj()
	bind := func(m *unstructured.Unstructured) admission.Request {
		return request(t, admissionv1.Update, m, builders.Bound(m, chosen, template).Obj())
	}
	// Nobody asks for the namespace of a bind that passes in every mode.
	ofBind := func(node, template string) (reads []string) {
		if node != "" {
			reads = append(reads, "nodes/"+node)
		}
		return append(reads, "pods/python-abc", "sandboxclaims/c1", "sandboxes/c1", "sandboxtemplates/"+template, "sandboxwarmpools/python")
	}
	all := [][]string{ofBind("node-1", "python")}
	namespace := []string{"namespaces/ns"}
	withFloors := [][]string{slices.Concat(namespace, all[0])}
	stale := builders.SandboxFrom(member).Image("sandbox:v0").Obj()
	born := builders.SandboxFrom(member).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	ofBirth := []string{"namespaces/ns", "sandboxtemplates/python", "sandboxwarmpools/python"}
	ofStart := []string{"namespaces/ns", "pods/c1", "sandboxclaims/c1", "sandboxtemplates/python"}
	// Who names it asks for no Pod in its way.
	named := func(reads []string) []string {
		return slices.DeleteFunc(slices.Clone(reads), func(of string) bool { return strings.HasPrefix(of, "pods/") })
	}
	itsOwn := []string{"sandboxes/python-abc", "sandboxwarmpools/python"}
	for name, tc := range map[string]struct {
		pool   *unstructured.Unstructured
		floors settings.Floors
		// node is where a cache shows the Pod.
		node   string
		req    admission.Request
		stamps bool
		want   [][]string
	}{
		"a bind":                        {pool, nil, "node-1", bind(member), false, all},
		"a bind, floors for strategies": {pool, floors, "node-1", bind(member), false, withFloors},
		"a bind, the pool enforces":     {enforcing, nil, "node-1", bind(labelled), false, all},
		"a bind of another template's": {pool, floors, "node-1", bind(elsewhere), false, [][]string{
			slices.Concat(namespace, ofBind("node-1", "older")), {"sandboxtemplates/python"},
		}},
		"a bind that is refused": {pool, nil, "node-1", bind(stale), false, append(slices.Clone(all), namespace)},
		// With another round for the node, the namespace comes along.
		"a bind, the node is not known":   {pool, nil, "", bind(member), false, [][]string{ofBind("", "python"), {"namespaces/ns", "nodes/node-1"}}},
		"a bind, the cache is late":       {pool, nil, "node-0", bind(member), false, [][]string{ofBind("node-0", "python"), {"namespaces/ns", "nodes/node-1"}}},
		"that is refused, node not known": {pool, nil, "", bind(stale), false, [][]string{ofBind("", "python"), {"namespaces/ns", "nodes/node-1"}}},
		"that is refused, cache is late":  {pool, nil, "node-0", bind(stale), false, [][]string{ofBind("node-0", "python"), {"namespaces/ns", "nodes/node-1"}}},
		"a birth":                         {pool, floors, "node-1", request(t, admissionv1.Create, nil, born), false, [][]string{ofBirth}},
		"a birth that is named":           {pool, floors, "node-1", request(t, admissionv1.Create, nil, member), true, [][]string{ofBirth}},
		"a cold start":                    {pool, floors, "node-1", request(t, admissionv1.Create, nil, start), false, [][]string{ofStart, itsOwn}},
		"a cold start, named":             {pool, floors, "node-1", request(t, admissionv1.Create, nil, start), true, [][]string{named(ofStart), itsOwn}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				labels := map[string]string{settings.EnforcementKey: "enforce"}
				if tc.pool == enforcing {
					labels = nil
				}
				held, stored := livereadtest.NewRounds(), storedReads{
					"nodes/node-1": {Object: map[string]any{
						"metadata": map[string]any{"name": "node-1"},
						"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
					}},
					"namespaces/ns":   {Object: map[string]any{"metadata": map[string]any{"name": "ns"}}},
					"pods/python-abc": pod, "sandboxclaims/c1": chosen, "sandboxtemplates/python": template, "sandboxwarmpools/python": tc.pool,
				}
				stored["namespaces/ns"].SetLabels(labels)
				p := &agentsandbox.Platform{
					Reader: held.Reader(stored, readOf), Resolver: stored, History: stored,
					Defaults:   settings.Defaults{Mode: settings.Audit, Strategy: freshness.Recreate, Floors: tc.floors},
					CachedNode: func(_, _ string) string { return tc.node },
				}
				modes := &Modes{Live: p.NamespaceLabels, Cached: known(labels), Defaults: p.Defaults}
				handle := guard(p, modes).Handle
				if tc.stamps {
					handle = (&Stamp{Revisions: p, Modes: modes, Timeout: time.Minute}).Handle
				}
				var answer admission.Response
				rounds, _ := held.Of(func() error {
					answer = handle(t.Context(), tc.req)
					return nil
				})
				var got [][]string
				for _, of := range rounds {
					got = append(got, strings.Fields(of))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("rounds of reads (-want,+got):\n%s", diff)
				}
				if !tc.stamps && answer.AuditAnnotations["mode"] != "enforce" || tc.stamps && len(answer.Patches) == 0 {
					t.Errorf("answered in another mode: %+v", answer)
				}
				if answer.Result != nil && strings.Contains(answer.Result.Message, "could not decide") {
					t.Errorf("undecided: %s", answer.Result.Message)
				}
			})
		})
	}
}

// known is what a cache shows of a namespace.
func known(labels map[string]string) platform.NamespaceLabels {
	return func(context.Context, string) (map[string]string, error) { return labels, nil }
}

func guard(p Platform, m *Modes) *Guard {
	return &Guard{
		Platform: p, Modes: m, Metrics: NewMetrics(prometheus.NewRegistry()), Observer: &hints{},
		Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)), Timeout: time.Minute,
	}
}
