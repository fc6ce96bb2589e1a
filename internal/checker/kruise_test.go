package checker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
)

// kruiseScene is a SandboxSet with one member, and what happens to them.
type kruiseScene struct {
	*recording
	set, box, pod *unstructured.Unstructured
}

type kruiseObj struct{ *unstructured.Unstructured }

// Obj makes it a builder.
func (o kruiseObj) Obj() *unstructured.Unstructured { return o.Unstructured }

func kruiseMake(kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": groupKruise + "/v1alpha1", "kind": kind, "spec": spec}}
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	return u
}

func kruiseSpec(image string) map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "c", "image": image, "resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}}},
	}}}}
}

func controlling(of *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(), Controller: ptr.To(true)}}
}

func (s *kruiseScene) begin(spec map[string]any) {
	s.set = s.store(Added, kruiseObj{kruiseMake("SandboxSet", "pool", spec)})
	s.born(spec)
}

// born makes the member, and its Pod of an image.
func (s *kruiseScene) born(spec map[string]any) {
	s.box = kruiseMake("Sandbox", "pool-1", runtimeCopy(spec))
	s.box.SetGeneration(1)
	s.box.SetLabels(map[string]string{labelKruisePool: "pool", labelKruiseTemplate: "pool"})
	s.box.SetOwnerReferences(controlling(s.set))
	s.box = s.store(Added, kruiseObj{s.box})
	podSpec, _, _ := unstructured.NestedMap(spec, "template", "spec")
	if podSpec == nil {
		podSpec = kruiseSpec("box:1")["template"].(map[string]any)["spec"].(map[string]any)
	}
	s.pod = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": podSpec}}
	s.pod.SetNamespace(ns)
	s.pod.SetName("pool-1")
	s.pod.SetUID("uid-pod-1")
	s.pod.SetOwnerReferences(controlling(s.box))
	s.pod = s.store(Added, kruiseObj{s.pod})
	s.running()
}

func runtimeCopy(m map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: m}).DeepCopy().Object
}

func (s *kruiseScene) running() {
	s.box.Object["status"] = map[string]any{
		"phase": "Running", "podInfo": map[string]any{"podIP": "10.0.0.1"}, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
	}
	s.change(&s.box, func(*unstructured.Unstructured) {})
}

func (s *kruiseScene) change(of **unstructured.Unstructured, by func(*unstructured.Unstructured)) {
	next := (*of).DeepCopy()
	by(next)
	*of = s.store(Modified, kruiseObj{next})
}

// edit has the SandboxSet make something else.
func (s *kruiseScene) edit(image string) {
	s.change(&s.set, func(u *unstructured.Unstructured) { u.Object["spec"] = kruiseSpec(image) })
}

func (s *kruiseScene) claim(name string, spec map[string]any) string {
	return string(s.store(Added, kruiseObj{kruiseMake("SandboxClaim", name, spec)}).GetUID())
}

// take is the one PUT.
func (s *kruiseScene) take(owner, claim string, more ...func(*unstructured.Unstructured)) {
	s.change(&s.box, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(nil)
		labels := maps.Clone(u.GetLabels())
		if claim != "" {
			labels[labelKruiseClaim] = claim
		}
		u.SetLabels(labels)
		u.SetAnnotations(map[string]string{keyKruiseOwner: owner})
		for _, m := range more {
			m(u)
		}
	})
}

// takenAfter is take by a user, so long after what happened last.
func (s *kruiseScene) takenAfter(user string, after time.Duration) {
	at := s.now.Add(after).Format(time.RFC3339)
	s.take(user, "", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{keyKruiseOwner: user, keyKruiseTaken: at})
	})
}

// back gives it to its pool again.
func (s *kruiseScene) back() {
	s.change(&s.box, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(controlling(s.set))
		labels := maps.Clone(u.GetLabels())
		delete(labels, labelKruiseClaim)
		u.SetLabels(labels)
		u.SetAnnotations(nil)
	})
}

func firstContainer(u *unstructured.Unstructured, change func(c map[string]any)) {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	change(containers[0].(map[string]any))
	_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
}

func toImage(image string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { firstContainer(u, func(c map[string]any) { c["image"] = image }) }
}

func toAmount(of, amount string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		firstContainer(u, func(c map[string]any) { _ = unstructured.SetNestedField(c, amount, "resources", "requests", of) })
	}
}

func TestKruise(t *testing.T) {
	const user = "user-1"
	asks := func(name string) map[string]any { return map[string]any{"templateName": name} }
	for name, tc := range map[string]struct {
		tell func(s *kruiseScene)
		want []string
	}{
		"a user gets a fresh one":  {func(s *kruiseScene) { s.begin(kruiseSpec("box:1")); s.take(user, "") }, []string{"user-1: Fresh"}},
		"a claim gets a fresh one": {func(s *kruiseScene) { s.begin(kruiseSpec("box:1")); s.take(s.claim("c", asks("pool")), "c") }, []string{"c: Fresh"}},
		"a user gets a stale one": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			s.running()
			s.take(user, "")
		}, []string{"user-1: Stale StaleRevision"}},
		"the edit may have come after the bind was admitted": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			s.take(user, "")
		}, []string{"user-1: Raced StaleRevision"}},
		"a user asked long after the edit": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			s.takenAfter(user, skew+time.Second)
		}, []string{"user-1: Stale StaleRevision"}},
		"a user asked soon after the edit": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			s.takenAfter(user, skew)
		}, []string{"user-1: Raced StaleRevision"}},
		"the pool serves old ones": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.change(&s.set, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{keyStrategy: "OnReplenish"}) })
			s.edit("box:2")
			s.running()
			s.take(user, "")
		}, []string{"user-1: Tolerated StaleRevision"}},
		"other contents": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.change(&s.set, func(u *unstructured.Unstructured) {
				u.Object["spec"].(map[string]any)["persistentContents"] = []any{"disk"}
			})
			s.running()
			s.take(user, "")
		}, []string{"user-1: Stale StaleRevision"}},
		"metadata of the Pod's template is no content": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(user, "", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, user, "spec", "template", "metadata", "labels", keyKruiseOwner)
			})
		}, []string{"user-1: Fresh"}},
		"what a user may change in place": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(user, "", toImage("box:mine"), toAmount("cpu", "2"))
		}, []string{"user-1: Fresh"}},
		"what a user may not change in place": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(user, "", toAmount("memory", "2Gi"))
		}, []string{"user-1: Stale BlueprintChanged"}},
		"what a claim asks for": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			spec := asks("pool")
			spec["inplaceUpdate"] = map[string]any{"image": "box:mine", "resources": map[string]any{"requests": map[string]any{"cpu": "2000m"}}}
			s.take(s.claim("c", spec), "c", toImage("box:mine"), toAmount("cpu", "2"))
		}, []string{"c: Fresh"}},
		"what a claim does not ask for": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(s.claim("c", asks("pool")), "c", toImage("box:mine"))
		}, []string{"c: Stale BlueprintChanged"}},
		"another pool's": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.store(Added, kruiseObj{kruiseMake("SandboxSet", "another", kruiseSpec("box:1"))})
			s.running()
			s.take(s.claim("c", asks("another")), "c")
		}, []string{"c: ForeignMember PoolMismatch"}},
		"a claim that nobody made": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take("uid-of-nobody", "c")
		}, []string{"c: Unjudged "}},
		"locked for scale-down": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.change(&s.box, func(u *unstructured.Unstructured) {
				u.SetAnnotations(map[string]string{keyKruiseOwner: kruiseScaleDown})
			})
			s.take(user, "")
		}, []string{"user-1: DeadMember MemberTerminating"}},
		"its Pod goes": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.change(&s.pod, func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(ptr.To(metav1.NewTime(s.now))) })
			s.running()
			s.take(user, "")
		}, []string{"user-1: DeadMember PodTerminating"}},
		"used": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(user, "")
			s.back()
			s.take("user-2", "")
		}, []string{"user-1: Fresh", "user-2: UsedMember MemberUsed"}},
		"recycled": {func(s *kruiseScene) {
			spec := kruiseSpec("box:1")
			_ = unstructured.SetNestedField(spec, "true", "template", "metadata", "annotations", keyKruiseCleanup)
			s.begin(spec)
			s.take(user, "")
			s.back()
			s.take("user-2", "")
		}, []string{"user-1: Fresh", "user-2: Fresh"}},
		"taken from somebody": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.take(user, "")
			s.take("user-2", "")
		}, []string{"user-1: Fresh", "user-2: Duplicate MemberClaimed"}},
		"a cold start": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.store(Added, kruiseObj{cold(kruiseSpec("box:1"), user, "")})
		}, []string{"user-1: Fresh"}},
		"a stale cold start for a claim that waits": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			owner := s.claim("c", asks("pool"))
			s.store(Added, kruiseObj{cold(kruiseSpec("box:1"), owner, "c")})
		}, []string{"c: Stale StaleRevision"}},
		"a stale cold start for a user, who may have asked before": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.edit("box:2")
			s.store(Added, kruiseObj{cold(kruiseSpec("box:1"), user, "")})
		}, []string{"user-1: Raced StaleRevision"}},
		"a reference: the Pod is the proof": {func(s *kruiseScene) {
			template := s.store(Added, kruiseObj{kruiseMake("SandboxTemplate", "tpl", kruiseSpec("box:1"))})
			s.begin(map[string]any{"templateRef": map[string]any{"name": "tpl"}})
			s.take(user, "")
			s.back()
			s.change(&template, func(u *unstructured.Unstructured) { u.Object["spec"] = kruiseSpec("box:2") })
			s.running()
			s.take("user-2", "")
		}, []string{"user-1: Fresh", "user-2: UsedMember MemberUsed", "user-2: Stale StaleRevision"}},
		"an edit of a field that no Pod has": {func(s *kruiseScene) {
			s.begin(kruiseSpec("box:1"))
			s.change(&s.set, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "Always", "spec", "template", "spec", "ImagePullPolicy")
			})
			s.take(user, "")
		}, []string{"user-1: Fresh"}},
		"a reference to a template with one volume in two places": {func(s *kruiseScene) {
			twice := kruiseSpec("box:1")
			container := twice["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			container["volumeMounts"] = []any{map[string]any{"name": "v", "mountPath": "/a"}, map[string]any{"name": "v", "mountPath": "/b"}}
			s.store(Added, kruiseObj{kruiseMake("SandboxTemplate", "tpl", twice)})
			s.begin(map[string]any{"templateRef": map[string]any{"name": "tpl"}})
			s.change(&s.pod, func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(u.Object, []any{container}, "spec", "containers")
			})
			s.take(user, "")
		}, []string{"user-1: Fresh"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &kruiseScene{recording: newRecording(t)}
			tc.tell(s)
			s.progress()
			var got []string
			for _, b := range s.h.Judge().Binds {
				if len(b.Findings) == 0 {
					got = append(got, fmt.Sprintf("%s: %s", b.Claim.Name, b.Class))
				}
				for _, f := range b.Findings {
					got = append(got, fmt.Sprintf("%s: %s %s", b.Claim.Name, f.Class, f.Reason))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("binds (-want,+got):\n%s", diff)
			}
		})
	}
}

func cold(spec map[string]any, owner, claim string) *unstructured.Unstructured {
	box := kruiseMake("Sandbox", "pool-cold", spec)
	box.SetLabels(map[string]string{labelKruisePool: "pool", labelKruiseTemplate: "pool"})
	if claim != "" {
		box.SetLabels(map[string]string{labelKruisePool: "pool", labelKruiseTemplate: "pool", labelKruiseClaim: claim})
	}
	box.SetAnnotations(map[string]string{keyKruiseOwner: owner})
	return box
}

// A claim may have as many as it wants, and a user any number.
func TestKruiseHoldings(t *testing.T) {
	for name, tc := range map[string]struct {
		wants int64
		owner string
		want  []Class
	}{
		"a claim wants two": {2, "c", []Class{Fresh, Fresh, Duplicate}},
		"a user":            {0, "", []Class{Fresh, Fresh, Fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &kruiseScene{recording: newRecording(t)}
			s.begin(kruiseSpec("box:1"))
			owner := "user-1"
			if tc.owner != "" {
				owner = s.claim(tc.owner, map[string]any{"templateName": "pool", "replicas": tc.wants})
			}
			for i := range 3 {
				box := cold(kruiseSpec("box:1"), owner, tc.owner)
				box.SetName(fmt.Sprintf("box-%d", i))
				box.SetUID(types.UID(box.GetName()))
				s.store(Added, kruiseObj{box})
			}
			s.progress()
			var got []Class
			for _, b := range s.h.Judge().Binds {
				got = append(got, b.Class)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("binds are %v, want %v", got, tc.want)
			}
		})
	}
}

// A SandboxSet is a pool and a template, and a SandboxTemplate of its name is another. What a LIST does not show is gone.
func TestKruiseTemplatesAreToldApart(t *testing.T) {
	s := &kruiseScene{recording: newRecording(t)}
	s.store(Added, kruiseObj{kruiseMake("SandboxTemplate", "pool", kruiseSpec("box:of-the-template"))})
	s.begin(kruiseSpec("box:1"))
	for _, r := range []Resource{Templates, Pools} {
		s.event(Event{Type: Gap, Resource: r, After: s.at(), RV: RV(fmt.Sprint(s.next()))})
		if r == Pools {
			s.event(Event{Type: Listed, Object: s.set})
		}
		s.event(Event{Type: Synced, Resource: r, RV: s.at()})
	}
	s.running()
	s.take("user-1", "")
	s.progress()
	binds := s.h.Judge().Binds
	if len(binds) != 1 || binds[0].Class != Fresh || binds[0].Expected.Template != "SandboxSet/pool" || binds[0].Pool != "pool" || binds[0].Strategy != "the platform's own" {
		t.Errorf("binds are %+v, want one that is fresh, of SandboxSet/pool", binds)
	}
	if line := s.h.templates[name{ns, "pool"}]; len(line.entries) != 2 || !line.entries[1].gone {
		t.Errorf("the template that a LIST did not show is not gone: %+v", line.entries)
	}
}

// Agent-sandbox's claims may change nothing in place.
func TestOnlyKruiseChangesInPlace(t *testing.T) {
	run(t, map[string]story{"another image": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
		s.create("c1")
		startCold(s, builders.TemplateFrom(s.template).Image("sandbox:mine").Obj(), nil)
	}}})
}
