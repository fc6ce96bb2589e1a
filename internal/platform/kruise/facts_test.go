package kruise

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

func create(t *testing.T, c *cluster) platform.Write {
	t.Helper()
	w, ours := (&Platform{}).Classify(admissionv1.Create, nil, c.written)
	if !ours {
		t.Fatal("the write is none of ours")
	}
	return w
}

// A birth is nobody's, and no other owner counts.
func TestABirthIsNobodys(t *testing.T) {
	c := newCluster()
	c.written, c.member = c.member, nil
	f, err := c.platform().Snapshot(t.Context(), create(t, c))
	if err != nil || f.Claim != nil || f.Besides != nil {
		t.Errorf("it is for %v, beside %v, error %v", f.Claim, f.Besides, err)
	}
}

// Whoever gives up a member for its node has to know which version of it was read.
func TestTheNodeThatWasRead(t *testing.T) {
	node := &unstructured.Unstructured{Object: map[string]any{}}
	node.SetName("n")
	node.SetResourceVersion("7")
	onNode := func(c *cluster) { set(c.pod(), "n", "spec", "nodeName") }
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   *platform.Node
	}{
		"none yet":         {func(*cluster) {}, nil},
		"a node":           {func(c *cluster) { onNode(c); c.add(nodes.Resource, node) }, &platform.Node{Name: "n", ResourceVersion: "7"}},
		"one that is gone": {onNode, &platform.Node{Name: "n"}},
		"a cold start's": {func(c *cluster) {
			onNode(c)
			pod := c.pod()
			coldly(c)
			pod.SetName("cold")
			c.add(pods.Resource, pod)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			w, _ := (&Platform{}).Classify(admissionv1.Update, newCluster().member, c.written)
			if c.member == nil {
				w = create(t, c)
			}
			f, err := c.platform().Snapshot(t.Context(), w)
			if err != nil || f.Pod == nil {
				t.Fatalf("the Pod is %v, error %v", f.Pod, err)
			}
			if diff := cmp.Diff(tc.want, f.Node); diff != "" {
				t.Errorf("Node (-want,+got):\n%s", diff)
			}
		})
	}
}

// A namespace is asked for the least strict strategy only where there is one for any.
func TestStrategiesHaveFloors(t *testing.T) {
	floor, err := settings.NewFloor(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}, false, freshness.Recreate)
	if err != nil {
		t.Fatal(err)
	}
	floors := settings.Floors{floor}
	for name, tc := range map[string]struct {
		floors  settings.Floors
		unread  bool
		want    freshness.Strategy
		wantErr bool
	}{
		"none":                              {nil, false, freshness.OnReplenish, false},
		"none, the namespace is unreadable": {nil, true, freshness.OnReplenish, false},
		"one":                               {floors, false, freshness.Recreate, false},
		"one, the namespace is unreadable":  {floors, true, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.set().SetAnnotations(map[string]string{settings.StrategyKey: "OnReplenish"})
			c.objs["namespaces/ns"].SetLabels(map[string]string{"tier": "prod"})
			c.fail["namespaces/ns"] = tc.unread
			p := c.platform()
			p.Defaults.Floors = tc.floors
			w, _ := p.Classify(admissionv1.Update, c.member, c.written)
			f, err := p.Snapshot(t.Context(), w)
			if (err != nil) != tc.wantErr || err == nil && f.Pool.Strategy != tc.want {
				t.Errorf("the pool is %+v, error %v, want %s, an error: %t", f.Pool, err, tc.want, tc.wantErr)
			}
			if inspection, err := p.Inspect(t.Context(), c.set(), nil); (err != nil) != tc.wantErr || err == nil && inspection.Strategy() != tc.want {
				t.Errorf("the strategy is inspected with error %v, want one: %t", err, tc.wantErr)
			}
		})
	}
}

// What is not understood is taken for nothing else.
func TestWhatNobodyUnderstandsDecidesNothing(t *testing.T) {
	broken := func(u *unstructured.Unstructured) { u.Object["spec"] = "nonsense" }
	for name, change := range map[string]func(*cluster){
		"a member":                   func(c *cluster) { broken(c.member) },
		"what is written":            func(c *cluster) { broken(c.written) },
		"a cold start":               func(c *cluster) { coldly(c); broken(c.written) },
		"its pool":                   func(c *cluster) { broken(c.set()) },
		"its Pod":                    func(c *cluster) { broken(c.pod()) },
		"a cold start, by reference": func(c *cluster) { coldByRef(c); set(c.written, "x", "spec", "template") },
		"a member, by reference": func(c *cluster) {
			byRef(c)
			c.written, c.member = c.member, nil
			set(c.written, "x", "spec", "volumeClaimTemplates")
		},
		"a member, by reference and by a Pod": func(c *cluster) {
			byRef(c)
			c.written, c.member = c.member, nil
			set(c.written, "x", "spec", "template")
		},
	} {
		c := newCluster()
		change(c)
		op := admissionv1.Update
		if c.member == nil {
			op = admissionv1.Create
		}
		w, _ := (&Platform{}).Classify(op, c.member, c.written)
		if f, err := c.platform().Snapshot(t.Context(), w); err == nil {
			t.Errorf("%s: read as %+v", name, f.Member)
		}
		if name == "its pool" {
			if _, err := c.platform().Inspect(t.Context(), c.set(), nil); err == nil {
				t.Errorf("%s is inspected", name)
			}
		}
	}
}

// What is recorded in part is compared as far as it is: of some revisions there are digests
// only, and some nobody understands.
func TestRevisionsThatAreRecordedInPart(t *testing.T) {
	c := newCluster()
	coldAsked(c, asksFor)
	older, err := contentOf(c.set())
	if err != nil {
		t.Fatal(err)
	}
	broken := made(kindSet, "pool")
	set(broken, "nonsense", "spec", "template")
	p := c.platform()
	p.History = recorded{{Hash: "v1-broken", Template: broken}, {Hash: "v1-digests", Rendered: older}}
	f, err := p.Snapshot(t.Context(), create(t, c))
	if err != nil || len(f.Known) != 1 || f.Known[0].Hash != "v1-digests" || !f.Known[0].Content.Equal(older) {
		t.Errorf("it is compared with %v, error %v", f.Known, err)
	}
}

// A birth may refer to what has the name of its pool, and is not of that pool's content.
func TestABirthThatRefersToANamesakeOfItsPool(t *testing.T) {
	c := newCluster()
	c.written, c.member = c.member, nil
	c.written.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
	if v, err := judged(t, c); err != nil || v.Reason != freshness.UnknownRevision {
		t.Errorf("judged %s (%s), error %v", v.Reason, v.Detail, err)
	}
}

// Of a SandboxTemplate only the Pod counts.
func TestRenderOfATemplate(t *testing.T) {
	c := newCluster()
	byRef(c)
	want, err := Objects{}.Render(c.template())
	if err != nil {
		t.Fatal(err)
	}
	runtimes(c.template())
	if got, err := (Objects{}).Render(c.template()); err != nil || !got.Equal(want) {
		t.Errorf("with runtimes it is %s, error %v, want %s", got.JSON(), err, want.JSON())
	}
}

func TestContentOfAPodThatNobodyUnderstands(t *testing.T) {
	for name, path := range map[string][]string{"its spec": {"spec"}, "its containers": {"spec", "containers"}} {
		pod := newCluster().pod()
		set(pod, "nonsense", path...)
		if got, err := (Objects{}).ContentOfPod(pod); err == nil {
			t.Errorf("%s is read as %s", name, got.JSON())
		}
	}
}

// A cold start that refers to a template has no note where its pool says all itself.
func TestANoteOnAReferenceBesideAPoolThatIsInline(t *testing.T) {
	c := newCluster()
	older := hashOf(t, c.set())
	outdated(c)
	coldly(c)
	c.written.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
	set(c.written, older+" -> "+hashOf(t, c.written), "metadata", "annotations", settings.RepairedKey)
	if stamp, err := c.platform().NewSandbox(t.Context(), c.written); err != nil || stamp.Repaired != "" || stamp.Repair != nil {
		t.Errorf("stamped %+v, error %v", stamp, err)
	}
}

// secondFails is a history that can be read once.
type secondFails struct{ read int }

func (s *secondFails) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	if s.read++; s.read > 1 {
		return nil, errAway
	}
	return nil, nil
}

// What a cold start says itself is compared only with what can be read.
func TestAReferenceIsNotComparedUnread(t *testing.T) {
	c := newCluster()
	coldByRef(c)
	p := c.platform()
	p.History = &secondFails{}
	if stamp, err := p.NewSandbox(t.Context(), c.written); !errors.Is(err, errAway) {
		t.Errorf("stamped %+v, error %v", stamp, err)
	}
	set(c.set(), "nonsense", "spec", "template")
	if stamp, err := c.platform().NewSandbox(t.Context(), c.written); err == nil {
		t.Errorf("beside a pool that nobody understands it is stamped %+v", stamp)
	}
}

// recorded is a history of what it says, and no more.
type recorded []platform.Recorded

func (r recorded) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	return r, nil
}

// A cold start whose pool has gone asks for nothing that could be put back.
func TestAColdStartWhosePoolIsGone(t *testing.T) {
	c := newCluster()
	coldAsked(c, asksFor)
	delete(c.objs, Sets.Resource+"/pool")
	if v, err := judged(t, c); err != nil || v.Reason != freshness.PoolGone {
		t.Errorf("judged %s (%s), error %v", v.Reason, v.Detail, err)
	}
}

// At generation 1 a Pod was built from its Sandbox, unless that refers to a template. A
// used member is one again only where its pool is there, and says so.
func TestMembersAsRead(t *testing.T) {
	recycling := func(c *cluster) { c.set().SetAnnotations(map[string]string{cleanupAnnotation: yes}) }
	for name, tc := range map[string]struct {
		change     func(*cluster)
		noPool     bool
		used       bool
		generation int64
	}{
		"a member":                      {func(*cluster) {}, false, false, 1},
		"by reference":                  {byRef, false, false, 0},
		"used":                          {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount") }, false, true, 1},
		"used, its pool is gone":        {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount") }, true, true, 1},
		"used, and recycled":            {func(c *cluster) { set(c.member, int64(1), "status", "recycledCount"); recycling(c) }, false, false, 1},
		"somebody's, in a pool like it": {func(c *cluster) { set(c.member, "uid-d", "metadata", "annotations", ownerAnnotation); recycling(c) }, false, true, 1},
		"claimed, in a pool that is so": {func(c *cluster) { labelled(claimedLabel, yes)(c.member); recycling(c) }, false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			s := stored{set: c.set(), template: c.objs[Templates.Resource+"/tpl"]}
			if tc.noPool {
				s = stored{}
			}
			m, err := s.member(platform.Write{Operation: freshness.Idle, New: c.member})
			if err != nil || m.Used != tc.used || m.Generation != tc.generation {
				t.Errorf("used: %t, generation %d, error %v, want %t and %d", m.Used, m.Generation, err, tc.used, tc.generation)
			}
		})
	}
}

// A status that does not show which Pod it has says nothing against the one of its name.
func TestAStatusThatShowsNoPod(t *testing.T) {
	c := newCluster()
	set(c.member, map[string]any{"podIP": "10.0.0.1"}, "status", "podInfo")
	c.written = takenFor(c.member, "uid-c", "c")
	if v, err := judged(t, c); err != nil || v.Reason != freshness.Fresh {
		t.Errorf("judged %s (%s), error %v", v.Reason, v.Detail, err)
	}
}

func TestReadySinceNobodyKnowsWhen(t *testing.T) {
	born := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	m := newCluster().member
	m.SetCreationTimestamp(metav1.NewTime(born))
	m.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "yesterday"}}}
	if got := (Objects{}).DescribeMember(m).ReadySince; !got.Equal(born) {
		t.Errorf("ready since %s, want %s", got, born)
	}
}

// People are told which revision a claim's Sandbox is built from, where that shows.
func TestSandboxRevision(t *testing.T) {
	c := newCluster()
	content, err := contentOf(c.set())
	if err != nil {
		t.Fatal(err)
	}
	if stamp, err := c.platform().SandboxRevision(t.Context(), coldFor(c.set(), "uid-c", "c")); err != nil || stamp.Hash != content.Hash() {
		t.Errorf("it is of %q, error %v, want %s", stamp.Hash, err, content.Hash())
	}
	referring := newCluster()
	byRef(referring)
	if stamp, err := referring.platform().SandboxRevision(t.Context(), coldFor(referring.set(), "uid-c", "c")); err != nil || stamp.Hash != "" {
		t.Errorf("by reference it is of %q, error %v", stamp.Hash, err)
	}
	// The namespace of an earlier answer may still be read.
	unreadable := newCluster()
	unreadable.fail[Sets.Resource+"/pool"] = true
	if stamp, err := unreadable.platform().SandboxRevision(t.Context(), coldFor(unreadable.set(), "uid-c", "c")); err == nil {
		t.Errorf("beside a pool that cannot be read it is of %q", stamp.Hash)
	}
}

// What waits for its turn until nobody waits for the answer any more is not decided.
func TestATurnThatNeverComesDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := newCluster()
		p := c.platform()
		p.Turns = fair.NewTurns(0, 0)
		w, _ := p.Classify(admissionv1.Update, c.member, c.written)
		if f, err := p.Snapshot(ctx, w); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the snapshot is of %s, error %v, want that the time is up", f.Member.Name, err)
		}
	})
}

// endsWhenAsked ends a context when somebody asks for a history.
type endsWhenAsked struct{ end context.CancelFunc }

func (h endsWhenAsked) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	h.end()
	return nil, nil
}

// An answer that nobody waits for any more is not looked for.
func TestAnAnswerThatNobodyWaitsForIsNotGiven(t *testing.T) {
	for name, turns := range map[string]*fair.Turns{"alone": nil, "beside others": fair.NewTurns(1, 1)} {
		for what, change := range map[string]func(*cluster){
			"a cold start": coldly,
			"a birth":      func(c *cluster) { c.written, c.member = c.member, nil },
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				c := newCluster()
				change(c)
				imaged(newer)(c.written)
				p := c.platform()
				p.History, p.Turns = endsWhenAsked{end}, turns
				if stamp, err := p.NewSandbox(ctx, c.written); !errors.Is(err, context.Canceled) || stamp.Hash != "" {
					t.Errorf("stamped %q, error %v, want that it was given up", stamp.Hash, err)
				}
			})
		}
	}
}
