package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/platformtest"
)

// lateCold is a cold start of what the pool's template is now. Nobody has named it yet, and
// no cold start has a template-hash.
func lateCold(c *cluster, owner, claim string) *unstructured.Unstructured {
	out := coldFor(c.set(), owner, claim)
	labels := out.GetLabels()
	delete(labels, prefix+"template-hash")
	out.SetLabels(labels)
	out.SetName("")
	out.SetGenerateName("pool-")
	return out
}

func hashOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	content, err := contentOf(u)
	if err != nil {
		t.Fatal(err)
	}
	return content.Hash()
}

// inFirst are an object's containers, the first one with that much CPU.
func inFirst(u *unstructured.Unstructured, cpu string) []any {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err := unstructured.SetNestedField(list[0].(map[string]any), cpu, "resources", "requests", "cpu"); err != nil {
		panic(err)
	}
	return list
}

// What is repaired is, but for the note, what would have been created without any delay,
// whichever field changed and whatever the claim asks for.
func TestRepairs(t *testing.T) {
	field := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if value == nil {
				unstructured.RemoveNestedField(u.Object, path...)
				return
			}
			set(u, value, path...)
		}
	}
	volumes := func(names ...string) []any {
		var out []any
		for _, name := range names {
			out = append(out, map[string]any{"metadata": map[string]any{"name": name}})
		}
		return out
	}
	same := func(*unstructured.Unstructured) {}
	cpu := func(u *unstructured.Unstructured) { set(u, inFirst(u, "2"), "spec", "template", "spec", "containers") }
	cpuAsked := map[string]any{"requests": map[string]any{"cpu": "2"}}
	both := map[string]any{"image": asksFor, "resources": cpuAsked}
	for name, tc := range map[string]struct {
		before, edit func(*unstructured.Unstructured)
		// asks is what the claim asks for in place, fill what comes of that in a Sandbox.
		asks    map[string]any
		fill    func(*unstructured.Unstructured)
		digests bool
	}{
		"an image":            {before: same, edit: imaged(newer)},
		"an image, by digest": {before: same, edit: imaged(newer), digests: true},
		"a volume added":      {before: same, edit: field(volumes("data"), "spec", "volumeClaimTemplates")},
		"a volume removed":    {before: field(volumes("data"), "spec", "volumeClaimTemplates"), edit: field(nil, "spec", "volumeClaimTemplates")},
		"contents":            {before: same, edit: field([]any{"disk"}, "spec", "persistentContents")},
		"runtimes": {
			before: field([]any{map[string]any{"name": "a"}}, "spec", "runtimes"), edit: field([]any{map[string]any{"name": "b"}}, "spec", "runtimes"),
		},
		"how it pauses": {before: same, edit: field("stop", "spec", "pauseStrategy", "type")},
		"metadata of the Pod's": {before: same, edit: func(u *unstructured.Unstructured) {
			imaged(newer)(u)
			field("v2", "spec", "template", "metadata", "labels", "app")(u)
		}},
		"what the claim asks for stays": {before: same, asks: both, fill: func(u *unstructured.Unstructured) { imaged(asksFor)(u); cpu(u) }, edit: func(u *unstructured.Unstructured) {
			imaged(newer)(u)
			field([]any{"disk"}, "spec", "persistentContents")(u)
		}},
		"CPU that the claim asks for stays": {before: same, asks: map[string]any{"resources": cpuAsked}, fill: cpu, edit: func(u *unstructured.Unstructured) {
			container(u)["resources"] = sized("1", "2Gi")
		}},
		"what the claim asks for in vain does not come": {before: same, asks: both, edit: imaged(newer)},
	} {
		for owner, claim := range map[string]string{"uid-c": "c", "user": ""} {
			if claim == "" && tc.asks != nil {
				continue
			}
			t.Run(name+" for "+owner, func(t *testing.T) {
				c := newCluster()
				c.digests = tc.digests
				tc.before(c.set())
				if tc.asks != nil {
					set(c.claim(), tc.asks, "spec", "inplaceUpdate")
				}
				v1 := hashOf(t, c.set())
				created := lateCold(c, owner, claim)
				if tc.fill != nil {
					tc.fill(created)
				}
				c.edited(c.set(), tc.edit)
				want := lateCold(c, owner, claim)
				if tc.fill != nil {
					tc.fill(want)
				}
				// What the claim wrote there, and what the cache had of it, stays.
				metadata, _, _ := unstructured.NestedMap(created.Object, "spec", "template", "metadata")
				set(want, metadata, "spec", "template", "metadata")
				set(want, v1+" -> "+hashOf(t, c.set()), "metadata", "annotations", settings.RepairedKey)

				got, stamp := platformtest.Rewrite(t, c.platform(), created)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("repaired (-want,+got):\n%s", diff)
				}
				c.member, c.written = nil, got
				if v, err := judged(t, c); err != nil || v.Reason != freshness.Fresh || stamp.Hash != hashOf(t, c.set()) {
					t.Errorf("judged %s (%s), %v, stamped %s; want a fresh one, stamped %s", v.Reason, v.Detail, err, stamp.Hash, hashOf(t, c.set()))
				}
				again, second := platformtest.Rewrite(t, c.platform(), got)
				if diff := cmp.Diff(got, again); diff != "" || second.Repair != nil {
					t.Errorf("a second time %v (-want,+got):\n%s", second.Repair, diff)
				}
			})
		}
	}
}

// lateRef is a cold start that refers to the template that the pool refers to now.
func lateRef(c *cluster, owner, claim string) *unstructured.Unstructured {
	out := lateCold(c, owner, claim)
	unstructured.RemoveNestedField(out.Object, "spec", "template")
	return out
}

// referringTo has the pool refer to another template from now on.
func referringTo(c *cluster, name string) {
	template := c.template().DeepCopy()
	template.SetName(name)
	imaged(newer)(template)
	c.add(Templates.Resource, template)
	c.edited(c.set(), func(u *unstructured.Unstructured) { set(u, name, "spec", "templateRef", "name") })
}

// A cold start of a pool that has referred to another template refers to the one of now. It
// stays unnamed: what it is built from it does not show.
func TestRepairsOfReferences(t *testing.T) {
	for owner, claim := range map[string]string{"uid-c": "c", "user": ""} {
		t.Run("for "+owner, func(t *testing.T) {
			c := newCluster()
			byRef(c)
			created, v1 := lateRef(c, owner, claim), hashOf(t, c.set())
			referringTo(c, "next")
			want := lateRef(c, owner, claim)
			set(want, v1+" -> "+hashOf(t, c.set()), "metadata", "annotations", settings.RepairedKey)
			// Who looks for a member does not find it by that: somebody has it.
			set(want, created.GetLabels()[templateLabel], "metadata", "labels", templateLabel)

			got, stamp := platformtest.Rewrite(t, c.platform(), created)
			if diff := cmp.Diff(want, got); diff != "" || stamp.Hash != "" {
				t.Errorf("stamped %q, repaired (-want,+got):\n%s", stamp.Hash, diff)
			}
			c.member, c.written = nil, got
			if v, err := judged(t, c); err != nil || v.Reason != freshness.Fresh {
				t.Errorf("judged %s (%s), %v; want a fresh one", v.Reason, v.Detail, err)
			}
			again, second := platformtest.Rewrite(t, c.platform(), got)
			if diff := cmp.Diff(got, again); diff != "" || second.Repair != nil {
				t.Errorf("a second time %v (-want,+got):\n%s", second.Repair, diff)
			}
		})
	}
}

// What is not stale for sure, or is no cold start, or is not wanted, stays as it is.
func TestWhatIsNotRepaired(t *testing.T) {
	user := func(c *cluster) *unstructured.Unstructured { return lateCold(c, "user", "") }
	mine := func(c *cluster) *unstructured.Unstructured { return lateCold(c, "uid-c", "c") }
	edited := func(of func(*cluster) *unstructured.Unstructured, change func(*unstructured.Unstructured)) func(*cluster) *unstructured.Unstructured {
		return func(c *cluster) *unstructured.Unstructured {
			out := of(c)
			change(out)
			return out
		}
	}
	none := func(*cluster) {}
	for name, tc := range map[string]struct {
		// cold is made before the pool's template changes, after it is what happens then.
		cold  func(*cluster) *unstructured.Unstructured
		after func(*cluster)
		off   bool
	}{
		"switched off":              {cold: mine, off: true},
		"switched off for the pool": {cold: mine, after: func(c *cluster) { c.set().SetAnnotations(map[string]string{settings.RepairKey: "false"}) }},
		"stale ones are wanted":     {cold: mine, after: func(c *cluster) { c.set().SetAnnotations(map[string]string{settings.StrategyKey: "OnReplenish"}) }},
		"nothing is known":          {cold: mine, after: func(c *cluster) { c.had = nil }},
		"a birth":                   {cold: func(c *cluster) *unstructured.Unstructured { return memberOf(c.set(), "new") }},
		"a clone": {cold: edited(user, func(u *unstructured.Unstructured) {
			set(u, "checkpoint", "metadata", "annotations", prefix+"restore-from")
			unstructured.RemoveNestedField(u.Object, "metadata", "labels", poolLabel)
		})},
		"edited by somebody":    {cold: edited(mine, func(u *unstructured.Unstructured) { container(u)["command"] = []any{"sh"} })},
		"a user's own image":    {cold: edited(user, imaged(asksFor))},
		"a user's own CPU":      {cold: edited(user, func(u *unstructured.Unstructured) { set(u, inFirst(u, "2"), "spec", "template", "spec", "containers") })},
		"an image nobody asks":  {cold: edited(mine, imaged(asksFor))},
		"an image another asks": {cold: edited(mine, imaged(asksFor)), after: func(c *cluster) { another(c); set(c.claim(), "x", "spec", "inplaceUpdate", "image") }},
		"an image a namesake asks": {
			cold:  edited(func(c *cluster) *unstructured.Unstructured { return lateCold(c, "uid-c", "d") }, imaged(asksFor)),
			after: another,
		},
		"the pool is gone":      {cold: mine, after: func(c *cluster) { delete(c.objs, Sets.Resource+"/pool") }},
		"the claim is gone":     {cold: mine, after: func(c *cluster) { delete(c.objs, Claims.Resource+"/c") }},
		"the claim is another":  {cold: mine, after: func(c *cluster) { c.claim().SetUID("uid-later") }},
		"the claim has all":     {cold: mine, after: func(c *cluster) { set(c.claim(), int64(1), "status", "claimedReplicas") }},
		"the pool is not asked": {cold: mine, after: func(c *cluster) { set(c.claim(), "another", "spec", "templateName") }},
		"it refers to a template": {cold: func(c *cluster) *unstructured.Unstructured { byRef(c); return lateRef(c, "uid-c", "c") }, after: func(c *cluster) {
			c.edited(c.template(), imaged(newer))
		}},
		"the pool refers to a template now": {cold: mine, after: func(c *cluster) {
			before := c.set().DeepCopy()
			imaged(image)(before)
			byRef(c)
			before.SetKind(kindTemplate)
			before.SetName("tpl")
			c.edited(before, imaged(newer))
			imaged(newer)(c.template())
		}},
		"it refers to a template, and the pool says all itself": {cold: func(c *cluster) *unstructured.Unstructured {
			byRef(c)
			out := lateRef(c, "uid-c", "c")
			c.edited(c.set(), func(u *unstructured.Unstructured) {
				u.Object["spec"] = map[string]any{"template": podTemplate(image)}
			})
			return out
		}},
		"it refers to a template of before, and somebody edited it": {cold: func(c *cluster) *unstructured.Unstructured {
			byRef(c)
			out := lateRef(c, "uid-c", "c")
			runtimes(out)
			referringTo(c, "next")
			return out
		}},
		"it refers to a template that no pool had": {cold: func(c *cluster) *unstructured.Unstructured {
			byRef(c)
			out := lateRef(c, "uid-c", "c")
			set(out, "other", "spec", "templateRef", "name")
			return out
		}},
		"it refers to a template of before, and the next is not there": {cold: func(c *cluster) *unstructured.Unstructured {
			byRef(c)
			out := lateRef(c, "uid-c", "c")
			referringTo(c, "next")
			delete(c.objs, Templates.Resource+"/next")
			return out
		}},
		"it has no Pod": {cold: func(c *cluster) *unstructured.Unstructured {
			set(c.set(), map[string]any{"persistentContents": []any{"disk"}}, "spec")
			out := mine(c)
			unstructured.RemoveNestedField(out.Object, "spec", "template")
			c.edited(c.set(), func(u *unstructured.Unstructured) { set(u, podTemplate(image), "spec", "template") })
			return out
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			created := tc.cold(c)
			if firstContainer(c.set()) != nil {
				outdated(c)
			}
			if tc.after == nil {
				tc.after = none
			}
			tc.after(c)
			p := c.platform()
			p.RepairOff = tc.off
			got, stamp := platformtest.Rewrite(t, p, created)
			if diff := cmp.Diff(created, got); diff != "" || stamp.Repair != nil {
				t.Errorf("repaired %v (-want,+got):\n%s", stamp.Repair, diff)
			}
		})
	}
}

// another is a claim that asks for an image.
func another(c *cluster) {
	other := made(kindClaim, "d")
	other.Object["spec"] = map[string]any{"templateName": "pool", "inplaceUpdate": map[string]any{"image": asksFor}}
	c.add(Claims.Resource, other)
}

// A note that somebody else wrote is taken off, also from what is never repaired.
func TestForgedNotesOfRepairs(t *testing.T) {
	c := newCluster()
	v1 := hashOf(t, c.set())
	outdated(c)
	v2 := hashOf(t, c.set())
	for name, tc := range map[string]struct {
		of         *unstructured.Unstructured
		note, want string
	}{
		"of what was repaired": {lateCold(c, "uid-c", "c"), v1 + " -> " + v2, v1 + " -> " + v2},
		"from what never was":  {lateCold(c, "uid-c", "c"), "v1-0 -> " + v2, ""},
		"to what it is not":    {lateCold(c, "uid-c", "c"), v2 + " -> " + v1, ""},
		"on a member":          {memberOf(c.set(), "new"), v1 + " -> " + v2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			set(tc.of, tc.note, "metadata", "annotations", settings.RepairedKey)
			stamp, err := c.platform().NewSandbox(t.Context(), tc.of)
			if diff := cmp.Diff([]string{tc.want, v2}, []string{stamp.Repaired, stamp.Hash}); err != nil || diff != "" {
				t.Errorf("%v (-want,+got):\n%s", err, diff)
			}
		})
	}
}

// What cannot be read is not repaired, and the verdict on it is up to the guard.
func TestNothingIsRepairedByWhatCannotBeRead(t *testing.T) {
	c := newCluster()
	created := lateCold(c, "uid-c", "c")
	outdated(c)
	c.fail["history"] = true
	if stamp, err := c.platform().NewSandbox(t.Context(), created); err == nil || stamp.Repair != nil || !stamp.Namespace.Started() {
		t.Errorf("the stamp is %+v, %v; want an error, in its namespace", stamp, err)
	}
	w, ours := (&Platform{}).Classify(admissionv1.Create, nil, created)
	if _, err := c.platform().Snapshot(t.Context(), w); !ours || err == nil {
		t.Errorf("classified %t, snapshot %v; want an error", ours, err)
	}
}
