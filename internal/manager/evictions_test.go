package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// unevicted is a platform whose Pods refuse to be evicted, with what is stored of it, by
// resource and name.
type unevicted struct {
	KeptPlatform
	stored map[string]*unstructured.Unstructured
	fails  string
}

func (p unevicted) Get(_ context.Context, gr schema.GroupResource, _, name string) (*unstructured.Unstructured, error) {
	if key := gr.Resource + "/" + name; key != p.fails {
		return p.stored[key], nil
	}
	return nil, errors.New("etcd is away")
}

func (unevicted) Kinds() platform.Kinds             { return agentsandbox.Objects{}.Kinds() }
func (unevicted) MemberOf(pod metav1.Object) string { return agentsandbox.Objects{}.MemberOf(pod) }
func (unevicted) PodOf(m metav1.Object) string      { return agentsandbox.Objects{}.PodOf(m) }
func (unevicted) DescribeMember(m *unstructured.Unstructured) platform.Description {
	d := agentsandbox.Objects{}.DescribeMember(m)
	d.Unevictable = m.GetLabels()["goes"] == ""
	return d
}

// Only who evicts the Pod of an idle member, which stands in the way, is told to wait.
func TestWhichEvictionsWait(t *testing.T) {
	template, pool := builders.MakeTemplate("ns", "python").Obj(), builders.MakePool("ns", "python").Obj()
	const box, pods, nodes = "sandboxes/m", "pods/m", "nodes/n"
	set := func(u *unstructured.Unstructured, value any, path ...string) {
		if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
	type stored = map[string]*unstructured.Unstructured
	for name, tc := range map[string]struct {
		change            func(stored)
		fails             string
		want, enforcement string
		err               bool
	}{
		"an idle member's":     {change: func(stored) {}, want: "m"},
		"where the pool says":  {change: func(s stored) { s[box].SetLabels(with(s[box].GetLabels(), settings.EnforcementKey, "enforce")) }, want: "m", enforcement: "enforce"},
		"on a node that goes":  {change: func(s stored) { delete(s, nodes) }, want: "m"},
		"on a node that stays": {change: func(s stored) { set(s[nodes], false, "spec", "unschedulable") }},
		"that may stay": {change: func(s stored) {
			set(s[pods], []any{map[string]any{"operator": "Exists"}}, "spec", "tolerations")
		}},
		"of nobody":           {change: func(s stored) { s[pods].SetOwnerReferences(nil) }},
		"of one that goes":    {change: func(s stored) { now := metav1.NewTime(time.Unix(1, 0)); s[box].SetDeletionTimestamp(&now) }},
		"that goes itself":    {change: func(s stored) { now := metav1.NewTime(time.Unix(1, 0)); s[pods].SetDeletionTimestamp(&now) }},
		"of one that is gone": {change: func(s stored) { delete(s, box) }},
		"gone":                {change: func(s stored) { delete(s, pods) }},
		"on no node":          {change: func(s stored) { set(s[pods], "", "spec", "nodeName") }},
		"somebody's":          {change: func(s stored) { s[box] = builders.Bound(s[box], builders.MakeClaim("ns", "c").Obj(), template).Obj() }},
		"that can be evicted": {change: func(s stored) { s[box].SetLabels(with(s[box].GetLabels(), "goes", "yes")) }},
		"of a namesake":       {change: func(s stored) { s[box].SetAnnotations(map[string]string{builders.AnnotationPodName: "other"}) }},
		"no Pod is read":      {change: func(stored) {}, fails: pods, err: true},
		"no member is read":   {change: func(stored) {}, fails: box, err: true},
		"no node is read":     {change: func(stored) {}, fails: nodes, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			member := builders.MakeMember(pool, template).Name("m").Obj()
			node := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"unschedulable": true}}}
			s := stored{box: member, pods: builders.MakePod(member).Stored("n").Obj(), nodes: node}
			tc.change(s)
			got, enforcement, err := evictions{unevicted{stored: s, fails: tc.fails}}.Replaced(t.Context(), "ns", "m")
			if got != tc.want || enforcement != tc.enforcement || (err != nil) != tc.err {
				t.Errorf("Replaced() = %q, %q, %v; want %q, %q", got, enforcement, err, tc.want, tc.enforcement)
			}
		})
	}
}

// with adds a label.
func with(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}
