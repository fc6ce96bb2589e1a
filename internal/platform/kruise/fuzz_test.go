package kruise

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/freshbind/freshbind/internal/freshness"
)

// FuzzSnapshot stores what anybody may write: it gets a verdict or an error, and nobody
// changes the objects.
func FuzzSnapshot(f *testing.F) {
	add := func(change func(*cluster)) {
		c := newCluster()
		change(c)
		var seed [][]byte
		for _, obj := range []*unstructured.Unstructured{c.member, c.written, c.set(), c.claim()} {
			text, err := json.Marshal(obj)
			if err != nil {
				f.Fatal(err)
			}
			seed = append(seed, text)
		}
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	for _, change := range []func(*cluster){func(*cluster) {}, asUser, byRef, recycled, func(c *cluster) { inPlace(c, newer) }} {
		add(change)
	}
	f.Fuzz(func(t *testing.T, old, obj, set, claim []byte) {
		c := newCluster()
		for _, of := range []struct {
			text []byte
			into **unstructured.Unstructured
		}{{old, &c.member}, {obj, &c.written}} {
			u := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(of.text, &u.Object); err != nil || u.Object == nil {
				return
			}
			u.SetNamespace("ns")
			*of.into = u
		}
		for key, text := range map[string][]byte{Sets.Resource + "/pool": set, Claims.Resource + "/c": claim} {
			u := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(text, &u.Object); err == nil && u.Object != nil {
				u.SetNamespace("ns")
				c.objs[key] = u
			}
		}
		before := []*unstructured.Unstructured{c.member.DeepCopy(), c.written.DeepCopy(), c.set().DeepCopy(), c.claim().DeepCopy()}
		for _, op := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			old := c.member
			if op == admissionv1.Create {
				old = nil
			}
			w, ours := (&Platform{}).Classify(op, old, c.written)
			if !ours {
				continue
			}
			facts, err := c.platform().Snapshot(t.Context(), w)
			if err != nil {
				continue
			}
			if v := freshness.Judge(facts.Snapshot); v.Allowed && w.Operation == freshness.Bind && poolOf(old).UID == "" {
				t.Errorf("what no pool has was given away: %+v", v)
			}
		}
		after := []*unstructured.Unstructured{c.member, c.written, c.set(), c.claim()}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the objects were changed (-before,+after):\n%s", diff)
		}
	})
}
