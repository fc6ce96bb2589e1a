package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
)

type write struct {
	op       admissionv1.Operation
	old, obj *unstructured.Unstructured
}

// writes of a Sandbox, and what they are; "" for nothing of ours.
func writes() map[string]struct {
	write
	want  freshness.Operation
	claim string
} {
	type row = struct {
		write
		want  freshness.Operation
		claim string
	}
	c := newCluster()
	claimed := c.written
	changed := func(of *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := of.DeepCopy()
		for _, change := range changes {
			change(out)
		}
		return out
	}
	annotated := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			u.SetAnnotations(annotations)
		}
	}
	labelled := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			labels[key] = value
			u.SetLabels(labels)
		}
	}
	// unmarked has nothing that says that somebody had it.
	unmarked := changed(claimed, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "labels", ownerLabel)
		u.SetAnnotations(nil)
		labelled(claimedLabel, "false")(u)
	})
	unlabelled := func(key string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			labels := u.GetLabels()
			delete(labels, key)
			u.SetLabels(labels)
		}
	}
	letGo := func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }
	owned := func(kind, apiVersion string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "x", UID: "uid-x", Controller: ptr.To(true)}})
		}
	}
	cold := coldFor(c.set(), "uid-c", "c")
	clone := changed(coldFor(c.set(), "user", ""), unlabelled(poolLabel))
	restored := annotated(prefix+"restore-from", "checkpoint")
	paused := func(u *unstructured.Unstructured) { set(u, true, "spec", "paused") }
	update := func(old, obj *unstructured.Unstructured) write { return write{admissionv1.Update, old, obj} }
	create := func(obj *unstructured.Unstructured) write { return write{admissionv1.Create, nil, obj} }
	return map[string]row{
		"taken by a claim":       {update(c.member, claimed), freshness.Bind, "uid-c"},
		"taken by a user of E2B": {update(c.member, takenFor(c.member, "user", "")), freshness.Bind, "user"},
		"let go for nobody":      {update(c.member, changed(c.member, letGo)), freshness.Bind, ""},
		"given to another pool":  {update(c.member, memberOf(made(kindSet, "other"), "m")), freshness.Bind, ""},
		"given to a stranger":    {update(c.member, changed(c.member, owned("Job", "batch/v1"))), freshness.Bind, ""},
		"kept, and no controller": {update(c.member, changed(c.member, func(u *unstructured.Unstructured) {
			refs := u.GetOwnerReferences()
			refs[0].Controller = nil
			u.SetOwnerReferences(refs)
		})), freshness.Bind, ""},
		"overtaken":                   {update(claimed, changed(claimed, annotated(ownerAnnotation, "uid-d"))), freshness.Bind, "uid-d"},
		"overtaken, and let go":       {update(claimed, changed(claimed, labelled(claimedLabel, "false"), annotated(ownerAnnotation, "uid-d"))), freshness.Bind, "uid-d"},
		"given on, by nobody":         {update(unmarked, claimed), freshness.Bind, "uid-c"},
		"given, and in its pool":      {update(c.member, changed(c.member, annotated(ownerAnnotation, "uid-c"))), freshness.Bind, "uid-c"},
		"given when locked":           {update(changed(c.member, annotated(ownerAnnotation, scaleDown)), changed(c.member, annotated(ownerAnnotation, "uid-c"))), freshness.Bind, "uid-c"},
		"locked when claimed":         {update(claimed, changed(claimed, annotated(ownerAnnotation, scaleDown))), "", ""},
		"locked to be deleted":        {update(c.member, changed(c.member, annotated(ownerAnnotation, scaleDown))), "", ""},
		"hidden":                      {update(c.member, changed(c.member, labelled(prefix+"sandbox-template", "nobody"))), "", ""},
		"paused":                      {update(claimed, changed(claimed, paused)), "", ""},
		"its owner noted":             {update(changed(claimed, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), claimed), freshness.Bind, "uid-c"},
		"locked, and in its pool":     {update(changed(c.member, annotated(ownerAnnotation, "uid-c")), changed(c.member, paused)), "", ""},
		"back in its pool":            {update(claimed, c.member), freshness.Return, ""},
		"back, without a mark":        {update(unmarked, c.member), freshness.Return, ""},
		"to a pool, and unused":       {update(changed(c.member, letGo), c.member), freshness.Return, ""},
		"back, and given again":       {update(unmarked, changed(c.member, annotated(ownerAnnotation, "uid-d"))), freshness.Bind, "uid-d"},
		"another's, of the same word": {update(changed(c.member, owned(kindSet, "example.com/v1")), changed(c.member, letGo)), "", ""},
		"born":                        {create(c.member), freshness.Birth, ""},
		"born to a claim":             {create(changed(c.member, labelled(claimedLabel, yes))), freshness.Birth, ""},
		"made for a claim":            {create(cold), freshness.ColdStart, "uid-c"},
		"made, as if restored":        {create(changed(cold, restored)), freshness.ColdStart, "uid-c"},
		"made, and of no pool":        {create(changed(cold, labelled(poolLabel, ""))), freshness.ColdStart, "uid-c"},
		"made, and named by nobody":   {create(changed(cold, labelled(claimNameLabel, ""), unlabelled(poolLabel))), freshness.ColdStart, "uid-c"},
		"made for a user":             {create(coldFor(c.set(), "user", "")), freshness.ColdStart, "user"},
		"a clone":                     {create(changed(clone, restored)), "", ""},
		"made by hand":                {create(changed(cold, labelled(claimedLabel, "false"))), "", ""},
		"deleted":                     {write{admissionv1.Delete, c.member, c.member}, "", ""},
	}
}

func TestClassify(t *testing.T) {
	for name, tc := range writes() {
		t.Run(name, func(t *testing.T) {
			w, ours := (&Platform{}).Classify(tc.op, tc.old, tc.obj)
			if diff := cmp.Diff([]any{tc.want, tc.claim, tc.want != ""}, []any{w.Operation, w.Claim.UID, ours}); diff != "" {
				t.Errorf("operation, claim, ours (-want,+got):\n%s", diff)
			}
		})
	}
}
