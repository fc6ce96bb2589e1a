package kruise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/livereadtest"
)

func roundsOf(t *testing.T, c *cluster, w platform.Write) []string {
	t.Helper()
	r, p := livereadtest.NewRounds(), c.platform()
	p.Reader = r.Reader(&c.store, func(ref liveread.Ref) string { return ref.GVR.Resource + "/" + ref.Name })
	p.ByUID = r.Reader(byUID{&c.store}, func(ref liveread.Ref) string { return ref.GVR.Resource + " by " + ref.Name })
	rounds, err := r.Of(func() error {
		_, err := p.Snapshot(t.Context(), w)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return rounds
}

// Every round of reads is a part of the price of a write. None reads what nobody needs.
func TestRoundsOfReads(t *testing.T) {
	const ofBind, ofStart = "namespaces/ns pods/m sandboxclaims/c sandboxsets/pool", "namespaces/ns pods/cold sandboxclaims/c sandboxsets/"
	for name, tc := range map[string]struct {
		change func(*cluster)
		// idle: nobody takes the member.
		idle bool
		want []string
	}{
		"a bind":                      {func(*cluster) {}, false, []string{ofBind}},
		"a bind for a user":           {asUser, false, []string{"namespaces/ns pods/m sandboxsets/pool"}},
		"a bind, its claim is hidden": {func(c *cluster) { c.written = takenFor(c.member, "uid-c", "x") }, false, []string{"namespaces/ns pods/m sandboxclaims/x sandboxsets/pool", "sandboxclaims by uid-c", "sandboxclaims/c"}},
		"a bind, its Pod has a node":  {func(c *cluster) { set(c.pod(), "n", "spec", "nodeName") }, false, []string{ofBind, "nodes/n"}},
		"a bind, by reference":        {byRef, false, []string{ofBind, "sandboxtemplates/tpl"}},
		"a bind, it may hold others":  {func(c *cluster) { c.uses = []string{"m", "more"} }, false, []string{ofBind, "sandboxes/more"}},
		"a member":                    {func(c *cluster) { labelled(poolLabel, "other")(c.member) }, true, []string{"namespaces/ns pods/m sandboxsets/pool"}},
		"a birth":                     {func(c *cluster) { c.written, c.member = c.member, nil }, false, []string{"namespaces/ns sandboxsets/pool"}},
		"a cold start":                {coldly, false, []string{ofStart + "pool"}},
		"a cold start of another's":   {func(c *cluster) { coldly(c); labelled(poolLabel, "other")(c.written) }, false, []string{ofStart + "other", "sandboxsets/pool"}},
		"a cold start without a name": {func(c *cluster) { coldly(c); c.written.SetName("") }, false, []string{"namespaces/ns sandboxclaims/c sandboxsets/pool"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				tc.change(c)
				op := admissionv1.Update
				if c.member == nil {
					op = admissionv1.Create
				}
				w, _ := (&Platform{}).Classify(op, c.member, c.written)
				if tc.idle {
					w = platform.Write{Operation: freshness.Idle, New: c.member}
				}
				w.MayHold = c.uses
				if diff := cmp.Diff(tc.want, roundsOf(t, c, w)); diff != "" {
					t.Errorf("(-want,+got):\n%s", diff)
				}
			})
		})
	}
}

// A claim holds what is its own now, and is not going.
func TestWhatAClaimHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		// counted is how many the claim's status says.
		counted int64
		want    freshness.Reason
		detail  string
	}{
		"its own":                       {func(*unstructured.Unstructured) {}, 0, freshness.ClaimHoldsAnother, "more"},
		"its own, as its status counts": {func(*unstructured.Unstructured) {}, 1, freshness.ClaimHoldsAnother, "sandbox more"},
		"what its status counts":        {nil, 1, freshness.ClaimHoldsAnother, "number 1, by its status"},
		"what is going": {func(u *unstructured.Unstructured) {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
		}, 0, freshness.Fresh, ""},
		"a member":       {func(u *unstructured.Unstructured) { u.SetOwnerReferences(newCluster().member.GetOwnerReferences()) }, 0, freshness.Fresh, ""},
		"another's":      {func(u *unstructured.Unstructured) { set(u, "uid-d", "metadata", "annotations", ownerAnnotation) }, 0, freshness.Fresh, ""},
		"nothing, by it": {nil, 0, freshness.Fresh, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.uses = []string{"more"}
			if tc.change != nil {
				more := takenFor(memberOf(c.set(), "more"), "uid-c", "c")
				tc.change(more)
				c.add(Sandboxes.Resource, more)
			}
			set(c.claim(), tc.counted, "status", "claimedReplicas")
			v, err := judged(t, c)
			if err != nil || v.Reason != tc.want || !strings.Contains(v.Detail, tc.detail) {
				t.Errorf("judged %s (%s), error %v, want %s that says %q", v.Reason, v.Detail, err, tc.want, tc.detail)
			}
		})
	}
}

// The hint can name another claim, and is only a hint.
func TestAHintIsOnlyOne(t *testing.T) {
	c := newCluster()
	other := made(kindClaim, "other")
	other.Object["spec"] = map[string]any{"templateName": "another"}
	c.add(Claims.Resource, other)
	c.written = takenFor(c.member, "uid-c", "other")
	if v, err := judged(t, c); err != nil || v.Reason != freshness.Fresh {
		t.Errorf("judged %s (%s), error %v", v.Reason, v.Detail, err)
	}
}

var errAway = errors.New("etcd is away")

// partly knows all kinds but claims.
type partly struct{ resolver }

func (p partly) Resource(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gr == Claims {
		return schema.GroupVersionResource{}, errAway
	}
	return p.resolver.Resource(ctx, gr)
}

func TestAClaimThatCannotBeFoundDecidesNothing(t *testing.T) {
	away := livereadtest.GetterFunc(func(context.Context, liveread.Ref) (*unstructured.Unstructured, error) { return nil, errAway })
	for name, tc := range map[string]struct {
		hint   string
		change func(*cluster, *Platform)
		want   error
	}{
		"its hint cannot be read":  {"x", func(c *cluster, _ *Platform) { c.fail[Claims.Resource+"/x"] = true }, liveread.ErrUndecided},
		"its UID cannot be found":  {"", func(_ *cluster, p *Platform) { p.ByUID = liveread.NewReader(away, nil) }, errAway},
		"its kind is not known":    {"", func(_ *cluster, p *Platform) { p.Resolver = partly{} }, errAway},
		"its name cannot be read":  {"", func(c *cluster, _ *Platform) { c.fail[Claims.Resource+"/c"] = true }, liveread.ErrUndecided},
		"what it may hold, either": {"c", func(c *cluster, _ *Platform) { c.uses = []string{"more"}; c.fail[Sandboxes.Resource+"/more"] = true }, liveread.ErrUndecided},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			p := c.platform()
			tc.change(c, p)
			written := takenFor(c.member, "uid-c", "c")
			set(written, tc.hint, "metadata", "labels", claimNameLabel)
			w, _ := p.Classify(admissionv1.Update, c.member, written)
			w.MayHold = c.uses
			if f, err := p.Snapshot(t.Context(), w); !errors.Is(err, tc.want) {
				t.Errorf("the claim is %v, error %v, want %v", f.Claim, err, tc.want)
			}
		})
	}
}
