package kruise

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

func imaged(image string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { container(u)["image"] = image }
}

// outdated has the pool's template recorded and changed, after which what was built is
// stale.
func outdated(c *cluster) { c.edited(c.set(), imaged(newer)) }

// commanded is outdated also by what no claim can ask for.
func commanded(c *cluster) {
	c.edited(c.set(), func(u *unstructured.Unstructured) {
		imaged(newer)(u)
		container(u)["command"] = []any{"serve"}
	})
}

// coldAsked is a cold start whose claim asks for an image and for CPU.
func coldAsked(c *cluster, image string) {
	coldly(c)
	inPlace(c, image)
}

const asksFor = "registry.example.com/box:of-the-claim"

func TestWhatIsStaleIsNamed(t *testing.T) {
	older := newCluster()
	content, err := contentOf(older.set())
	if err != nil {
		t.Fatal(err)
	}
	v1 := content.Hash()
	byRef(older)
	earlier, err := contentOf(older.set())
	if err != nil {
		t.Fatal(err)
	}
	type found struct {
		Allowed bool
		Reason  freshness.Reason
		// Older: it is named as the revision that was in force before.
		Older bool
	}
	stale, unknown := found{false, freshness.StaleRevision, true}, found{false, freshness.UnknownRevision, false}
	// It has the content, but that was another template's, or the template's alone.
	namesake := found{false, freshness.UnknownRevision, true}
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   found
	}{
		"a member":                         {outdated, stale},
		"a member for a user":              {func(c *cluster) { asUser(c); outdated(c) }, stale},
		"a member, where digests are kept": {func(c *cluster) { c.digests = true; outdated(c) }, stale},
		"a member and what its claim asks": {func(c *cluster) { inPlace(c, newer); outdated(c) }, stale},
		"a pod": {func(c *cluster) {
			outdated(c)
			imaged(newer)(c.member)
			c.written = takenFor(c.member, "uid-c", "c")
		}, stale},
		"a member that somebody edited": {func(c *cluster) {
			container(c.member)["command"] = []any{"sh"}
			c.written = takenFor(c.member, "uid-c", "c")
			outdated(c)
		}, unknown},
		"a member, and stale ones are wanted": {func(c *cluster) {
			outdated(c)
			c.set().SetAnnotations(map[string]string{settings.StrategyKey: "OnReplenish"})
		}, found{true, freshness.StaleRevision, true}},
		"of what is in force again": {func(c *cluster) { outdated(c); c.edited(c.set(), imaged(image)) }, found{true, freshness.Fresh, true}},
		"of what a namesake was": {func(c *cluster) {
			namesake := c.set().DeepCopy()
			namesake.SetKind(kindTemplate)
			c.edited(namesake, imaged(newer))
			imaged(newer)(c.set())
		}, namesake},
		"by reference, of what the set was": {func(c *cluster) {
			outdated(c)
			before := c.member.DeepCopy()
			byRef(c)
			imaged(newer)(c.template())
			imaged(newer)(c.pod())
			unstructured.RemoveNestedField(before.Object, "spec", "templateRef")
			c.member, c.written = before, takenFor(before, "uid-c", "c")
		}, namesake},

		"by reference": {func(c *cluster) { byRef(c); c.edited(c.template(), imaged(newer)) }, stale},
		"by reference, where digests are kept": {func(c *cluster) {
			byRef(c)
			c.digests = true
			c.edited(c.template(), imaged(newer))
		}, stale},
		"by reference, in what its images do not show": {func(c *cluster) {
			byRef(c)
			c.edited(c.template(), func(u *unstructured.Unstructured) { container(u)["command"] = []any{"serve"} })
		}, stale},
		"by reference, of a pool that says more": {func(c *cluster) {
			byRef(c)
			for _, of := range []*unstructured.Unstructured{c.set(), c.member, c.written} {
				runtimes(of)
			}
			c.edited(c.template(), imaged(newer))
		}, stale},
		"of a pool that refers to a template, and says more": {func(c *cluster) {
			before := c.member
			byRef(c)
			c.member, c.written = before, takenFor(before, "uid-c", "c")
			for _, of := range []*unstructured.Unstructured{c.set(), c.member, c.written} {
				runtimes(of)
			}
			c.edited(c.template(), imaged(newer))
		}, found{false, freshness.StaleRevision, true}},
		"by reference, when its pool said less": {func(c *cluster) { byRef(c); c.edited(c.set(), runtimes) }, stale},
		"by reference, when its pool had other volumes": {func(c *cluster) {
			byRef(c)
			c.edited(c.set(), volumes)
		}, stale},
		"by reference, when its pool said less, and of an older template": {func(c *cluster) {
			byRef(c)
			c.edited(c.set(), runtimes)
			c.edited(c.template(), imaged(newer))
		}, stale},
		"by reference, when its pool said less long ago": {func(c *cluster) {
			byRef(c)
			for i := range maxOwnRevisions + 1 {
				c.edited(c.set(), func(u *unstructured.Unstructured) {
					set(u, []any{map[string]any{"name": strconv.Itoa(i)}}, "spec", "runtimes")
				})
			}
			slices.Reverse(c.had[kindSet+"/pool"])
		}, namesake},
		"by reference, when its pool referred to another": {func(c *cluster) {
			byRef(c)
			set(c.set(), "another", "spec", "templateRef", "name")
			c.edited(c.set(), func(u *unstructured.Unstructured) { runtimes(u); set(u, "tpl", "spec", "templateRef", "name") })
		}, namesake},
		"by reference, when its pool said what nobody recorded": {func(c *cluster) {
			byRef(c)
			c.edited(c.set(), runtimes)
			for _, of := range []*unstructured.Unstructured{c.member, c.written} {
				set(of, []any{map[string]any{"name": "another"}}, "spec", "runtimes")
			}
		}, found{false, freshness.UnknownRevision, false}},
		"by reference, when its pool said less, and digests are kept": {func(c *cluster) {
			byRef(c)
			c.digests = true
			c.edited(c.set(), runtimes)
		}, namesake},
		"by reference, a cold start when its pool said less": {func(c *cluster) { coldByRef(c); c.edited(c.set(), runtimes) }, stale},
		"by reference, of what is in force again": {func(c *cluster) {
			byRef(c)
			c.edited(c.template(), imaged(newer))
			c.edited(c.template(), imaged(image))
		}, found{true, freshness.Fresh, true}},
		"by reference, and somebody edited its pod": {func(c *cluster) {
			byRef(c)
			container(c.pod())["command"] = []any{"sh"}
			c.edited(c.template(), func(u *unstructured.Unstructured) { container(u)["args"] = []any{"serve"} })
		}, unknown},

		"a cold start":                   {func(c *cluster) { coldly(c); outdated(c) }, stale},
		"a cold start for a user":        {func(c *cluster) { coldly(c); c.written = coldFor(c.set(), "user", ""); outdated(c) }, stale},
		"a cold start as its claim asks": {func(c *cluster) { coldAsked(c, asksFor); commanded(c) }, stale},
		"a cold start as another claim asks": {func(c *cluster) {
			coldAsked(c, asksFor)
			imaged("registry.example.com/box:of-another")(c.written)
			commanded(c)
		}, unknown},
		"a cold start of other amounts": {func(c *cluster) {
			coldAsked(c, asksFor)
			c.edited(c.set(), func(u *unstructured.Unstructured) { container(u)["resources"] = sized("1", "2Gi") })
		}, stale},
		"a cold start, asked for the older one":             {func(c *cluster) { coldAsked(c, image); commanded(c) }, stale},
		"a cold start whose claim asks for all that is new": {func(c *cluster) { coldAsked(c, asksFor); outdated(c) }, found{true, freshness.Fresh, false}},
		"a cold start as nobody asks":                       {func(c *cluster) { coldly(c); imaged(asksFor)(c.written); outdated(c) }, unknown},
		"a cold start as a user likes": {func(c *cluster) {
			coldly(c)
			c.written = coldFor(c.set(), "user", "")
			imaged(asksFor)(c.written)
			outdated(c)
		}, unknown},
		"a cold start that somebody edited, too": {func(c *cluster) { coldAsked(c, asksFor); container(c.written)["command"] = []any{"sh"}; commanded(c) }, unknown},

		"a birth": {func(c *cluster) { c.written, c.member = c.member, nil; outdated(c) }, stale},
		"a birth of what nobody knows": {func(c *cluster) {
			c.written, c.member = c.member, nil
			container(c.written)["command"] = []any{"sh"}
			outdated(c)
		}, found{true, freshness.UnknownRevision, false}},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgedAfter(t, tc.change)
			if diff := cmp.Diff(tc.want, found{v.Allowed, v.Reason, v.Found == v1 || v.Found == earlier.Hash()}); diff != "" {
				t.Errorf("verdict (-want,+got), for %q:\n%s", v.Detail, diff)
			}
		})
	}
}

// answering is a history that can be asked so often, and then fails.
type answering struct {
	*cluster
	left int
}

func (a *answering) Revisions(ctx context.Context, of *unstructured.Unstructured) ([]platform.Recorded, error) {
	if a.left--; a.left < 0 {
		return nil, errors.New("the test lets nobody ask again")
	}
	return a.cluster.Revisions(ctx, of)
}

// Without the history nobody knows whether what is not current is older.
func TestAHistoryThatCannotBeReadIsNoVerdict(t *testing.T) {
	judge := func(ctx context.Context, p *Platform, c *cluster) error {
		op := admissionv1.Update
		if c.member == nil {
			op = admissionv1.Create
		}
		w, _ := p.Classify(op, c.member, c.written)
		_, err := p.Snapshot(ctx, w)
		return err
	}
	stamp := func(ctx context.Context, p *Platform, c *cluster) error {
		_, err := p.NewSandbox(ctx, c.written)
		return err
	}
	for name, tc := range map[string]struct {
		change func(*cluster)
		ask    func(context.Context, *Platform, *cluster) error
		// looks is how often the history is asked.
		looks int
	}{
		"a bind":                         {func(*cluster) {}, judge, 1},
		"a bind by reference":            {byRef, judge, 2},
		"the stamp of a cold start":      {coldly, stamp, 1},
		"the stamp of one, by reference": {coldByRef, stamp, 3},
	} {
		for left := range tc.looks + 1 {
			c := newCluster()
			tc.change(c)
			p := c.platform()
			p.History = &answering{c, left}
			if err := tc.ask(t.Context(), p, c); (err != nil) != (left < tc.looks) {
				t.Errorf("%s, with a history that answers %d times: error %v", name, left, err)
			}
		}
	}
}

func TestARevisionThatNobodyUnderstandsNamesNothing(t *testing.T) {
	c := newCluster()
	byRef(c)
	broken := c.set().DeepCopy()
	set(broken, "nonsense", "spec", "volumeClaimTemplates")
	set(broken, "nonsense", "spec", "template")
	p := c.platform()
	p.History = recorded{{Hash: "v1-of-before", Template: broken}}
	w, _ := p.Classify(admissionv1.Update, c.member, c.written)
	f, err := p.Snapshot(t.Context(), w)
	if err != nil || len(f.Known) > 0 {
		t.Errorf("known are %v, error %v, want none", f.Known, err)
	}
}
