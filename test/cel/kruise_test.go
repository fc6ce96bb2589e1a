package cel

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/webhooks"
)

// box is a Sandbox of OpenKruise Agents with these owners, labels and annotations, whose
// keys lack the group.
func box(refs []metav1.OwnerReference, labels, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kruise.Group + "/v1alpha1", "kind": "Sandbox",
		"metadata": map[string]any{"namespace": "ns", "name": "m"}, "spec": map[string]any{},
	}}
	grouped := func(in map[string]string) map[string]string {
		out := map[string]string{}
		for key, value := range in {
			out[kruise.Group+"/"+key] = value
		}
		return out
	}
	u.SetOwnerReferences(refs)
	if labels != nil {
		u.SetLabels(grouped(labels))
	}
	if annotations != nil {
		u.SetAnnotations(grouped(annotations))
	}
	return u
}

// The guard and the API server agree on what writes of OpenKruise Agents are.
func TestWritesOfOpenKruiseAgents(t *testing.T) {
	r := renderOf(t, kruise.Admission())
	type names = map[string]string
	ref := func(apiVersion, kind, uid string, controls bool) metav1.OwnerReference {
		out := metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "x", UID: types.UID("uid-" + uid)}
		if controls {
			out.Controller = ptr.To(true)
		}
		return out
	}
	refs := func(all ...metav1.OwnerReference) []metav1.OwnerReference { return all }
	const of = kruise.Group + "/v1alpha1"
	pooled := refs(ref(of, "SandboxSet", "", true))
	free, taken := names{"sandbox-claimed": "false", "sandbox-pool": "p"}, names{"sandbox-claimed": "true", "sandbox-pool": "p"}
	by := func(owner string) names { return names{"owner": owner} }
	member := box(pooled, free, nil)
	byReference := box(nil, taken, by("c"))
	byReference.Object["spec"] = map[string]any{"template": nil}
	in := func(m *unstructured.Unstructured, phase string) *unstructured.Unstructured {
		m = m.DeepCopy()
		m.Object["status"] = map[string]any{"phase": phase}
		return m
	}
	recycling := in(box(nil, taken, names{"owner": "c", "cleanup-enabled": "true"}), "Recycling")
	const used = "freshbind-used" + kruise.Suffix
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		want     freshness.Operation
		refused  []string
	}{
		"taken":                           {member, box(nil, taken, by("c")), freshness.Bind, nil},
		"let go":                          {member, box(nil, free, nil), freshness.Bind, nil},
		"without any metadata":            {member, box(nil, nil, nil), freshness.Bind, nil},
		"of a later version":              {member, box(refs(ref(kruise.Group+"/v1", "SandboxSet", "", true)), free, nil), "", nil},
		"to another pool":                 {member, box(refs(ref(of, "SandboxSet", "b", true)), free, nil), freshness.Bind, nil},
		"kept, and no controller":         {member, box(refs(ref(of, "SandboxSet", "", false)), free, nil), freshness.Bind, nil},
		"to a Job":                        {member, box(refs(ref("batch/v1", "Job", "b", true)), taken, by("c")), freshness.Bind, nil},
		"locked":                          {member, box(pooled, free, by("__manager_scale_down")), "", nil},
		"relabelled":                      {member, box(pooled, names{"sandbox-claimed": "false"}, nil), "", nil},
		"let go by a namesake":            {box(refs(ref("example.com/v1", "SandboxSet", "", true)), free, nil), box(nil, free, nil), "", nil},
		"let go, never controlled":        {box(refs(ref(of, "SandboxSet", "", false)), free, nil), box(nil, free, nil), "", nil},
		"given, and in its pool":          {member, box(pooled, free, by("c")), freshness.Bind, nil},
		"given when locked":               {box(pooled, free, by("__manager_scale_down")), box(pooled, free, by("c")), freshness.Bind, nil},
		"given, made by hand":             {box(nil, nil, nil), box(nil, nil, by("c")), freshness.Bind, nil},
		"given, claimed by nobody":        {box(nil, taken, nil), box(nil, taken, by("c")), freshness.Bind, nil},
		"written to":                      {box(nil, taken, by("c")), box(nil, free, by("c")), "", nil},
		"let go, and kept":                {box(nil, taken, by("c")), box(nil, taken, nil), "", nil},
		"overtaken":                       {box(nil, taken, by("c")), box(nil, taken, by("d")), freshness.Bind, nil},
		"overtaken, and let go":           {box(nil, taken, by("c")), box(nil, free, by("d")), freshness.Bind, nil},
		"locked when claimed":             {box(nil, taken, by("c")), box(nil, taken, by("__manager_scale_down")), "", nil},
		"back, by hand":                   {box(nil, taken, by("c")), member, freshness.Return, []string{used}},
		"back, by reference":              {byReference, member, freshness.Return, []string{used}},
		"back, by the recycler":           {recycling, member, freshness.Return, nil},
		"back, nobody asked for it":       {in(box(nil, taken, by("c")), "Recycling"), member, freshness.Return, []string{used}},
		"back, and not let go":            {in(recycling, "Running"), member, freshness.Return, []string{used}},
		"back, not controlled":            {recycling, box(refs(ref(of, "SandboxSet", "", false)), free, nil), "", nil},
		"back, without a mark":            {box(nil, free, nil), member, freshness.Return, []string{used}},
		"back, owned and then controlled": {box(refs(ref(of, "SandboxSet", "", false)), free, nil), member, freshness.Return, []string{used}},
		"owned, as before":                {box(refs(ref(of, "SandboxSet", "", false)), free, nil), box(refs(ref(of, "SandboxSet", "", false)), taken, nil), "", nil},
		"back, and given again":           {recycling, box(pooled, free, by("d")), freshness.Bind, nil},
		"born":                            {nil, member, freshness.Birth, nil},
		"cold":                            {nil, box(nil, taken, by("c")), freshness.ColdStart, nil},
		"cold, as if restored":            {nil, box(nil, taken, names{"owner": "c", "restore-from": "x"}), freshness.ColdStart, nil},
		"cold, and of no pool":            {nil, box(nil, names{"sandbox-claimed": "true", "sandbox-pool": ""}, by("c")), freshness.ColdStart, nil},
		"cold, by a claim's name":         {nil, box(nil, names{"sandbox-claimed": "true", "claim-name": ""}, by("c")), freshness.ColdStart, nil},
		"a clone":                         {nil, box(nil, names{"sandbox-claimed": "true", "sandbox-template": "x"}, names{"owner": "c", "restore-from": "x"}), "", nil},
		"of no pool and no claim":         {nil, box(nil, names{"sandbox-claimed": "true"}, by("c")), "", nil},
		"by hand":                         {nil, box(nil, nil, nil), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := write{old: tc.old, obj: tc.obj, user: "alice"}
			op := admissionv1.Create
			if tc.old != nil {
				op = admissionv1.Update
			}
			got, _ := (&kruise.Platform{}).Classify(op, tc.old, tc.obj)
			if diff := cmp.Diff(tc.want, got.Operation); diff != "" {
				t.Errorf("the guard takes it for (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(wanted(tc.want), judged(r.asked(t, w, enforced))); diff != "" {
				t.Errorf("asked (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refused, r.refusing(t, w)); diff != "" {
				t.Errorf("refused by (-want,+got):\n%s", diff)
			}
			stamped := tc.want == freshness.Birth || tc.want == freshness.ColdStart
			if got := slices.Contains(r.asked(t, w, enforced), "stamp.freshbind.dev"); got != stamped {
				t.Errorf("stamped: %t, want %t", got, stamped)
			}
		})
	}
	collected := write{old: member, obj: box(nil, free, nil), user: "system:serviceaccount:kube-system:generic-garbage-collector"}
	if asked := r.asked(t, collected, enforced); len(asked) > 0 {
		t.Errorf("the garbage collector is asked about: %q", asked)
	}
}

// The API server asks about deletes of what somebody has, by upstream's controllers and
// without a UID; the guard finds an owner in no others.
func TestDeletesOfOpenKruiseAgents(t *testing.T) {
	r := renderOf(t, kruise.Admission())
	type names = map[string]string
	pooled := []metav1.OwnerReference{{APIVersion: kruise.Group + "/v1alpha1", Kind: "SandboxSet", Name: "x", UID: "uid-x", Controller: ptr.To(true)}}
	taken, somebody := names{"sandbox-claimed": "true"}, names{"owner": "c"}
	byUID := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("uid-m")}}
	for name, tc := range map[string]struct {
		old     *unstructured.Unstructured
		user    string
		options *metav1.DeleteOptions
		owned   bool
		want    bool
	}{
		"what somebody has":        {box(nil, taken, somebody), kruise.ControllerUser, &metav1.DeleteOptions{}, true, true},
		"by anybody else":          {box(nil, taken, somebody), "alice", &metav1.DeleteOptions{}, true, false},
		"by the E2B server":        {box(nil, taken, somebody), "system:serviceaccount:sandbox-system:sandbox-manager", &metav1.DeleteOptions{}, true, false},
		"by its UID":               {box(nil, taken, somebody), kruise.ControllerUser, byUID, true, false},
		"a member":                 {box(pooled, names{"sandbox-claimed": "false"}, nil), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
		"a member, by owner alone": {box(pooled, taken, somebody), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
		"locked for scale-down":    {box(nil, taken, names{"owner": "__manager_scale_down"}), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
		"nobody's":                 {box(nil, taken, nil), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
		"free":                     {box(nil, names{"sandbox-claimed": "false"}, somebody), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
		"without any metadata":     {box(nil, nil, nil), kruise.ControllerUser, &metav1.DeleteOptions{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := r.hooks[webhooks.ProtectHook.Name]
			if got := h.in.Matches(enforced) && h.matches(t, write{old: tc.old, user: tc.user}.with(tc.options)); got != tc.want {
				t.Errorf("asked: %t, want %t", got, tc.want)
			}
			d, err := (&kruise.Platform{}).Deletion(t.Context(), tc.old, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Owner.UID != ""; got != tc.owned {
				t.Errorf("the guard finds an owner: %t, want %t", got, tc.owned)
			}
		})
	}
}

// The API server asks about Pods that a Sandbox controls, and about no others.
func TestPodsOfOpenKruiseAgents(t *testing.T) {
	r := renderOf(t, kruise.Admission())
	owned := func(apiVersion, kind string, controls bool) *unstructured.Unstructured {
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "ns", "name": "m"}, "spec": map[string]any{},
		}}
		if kind != "" {
			pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "m", UID: "uid-m", Controller: ptr.To(controls)}})
		}
		return pod
	}
	const of = kruise.Group + "/v1alpha1"
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured
		want bool
	}{
		"of a Sandbox":               {owned(of, "Sandbox", true), true},
		"of a Sandbox, some version": {owned(kruise.Group+"/v1", "Sandbox", true), true},
		"not controlled":             {owned(of, "Sandbox", false), false},
		"of a namesake":              {owned("agents.x-k8s.io/v1alpha1", "Sandbox", true), false},
		"of a SandboxSet":            {owned(of, "SandboxSet", true), false},
		"of nobody":                  {owned("", "", false), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.podHooks[webhooks.StampPodHook.Name].matches(t, write{obj: tc.pod, user: "alice"}.attributes()); got != tc.want {
				t.Errorf("stamped: %t, want %t", got, tc.want)
			}
			if got := (kruise.Objects{}).MemberOf(tc.pod) != ""; got != tc.want {
				t.Errorf("the guard finds a member: %t, want %t", got, tc.want)
			}
		})
	}
}
