package kruise

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/settings"
)

// A Pod is named by what it is built from, which its Sandbox need not say, and may not know.
func TestStampsOfPods(t *testing.T) {
	const current, before, another, none = "current", "before", "another", "none"
	commanded := func(u *unstructured.Unstructured) { container(u)["command"] = []any{"serve"} }
	// has the pool's member be somebody's.
	has := func(c *cluster) { c.member = c.written }
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   string
	}{
		"as its sandbox says":           {func(*cluster) {}, current},
		"of an older sandbox":           {outdated, before},
		"older than its sandbox":        {func(c *cluster) { outdated(c); imaged(newer)(c.member) }, before},
		"newer than its sandbox":        {func(c *cluster) { outdated(c); imaged(newer)(c.pod()) }, current},
		"that somebody edited":          {func(c *cluster) { commanded(c.pod()) }, another},
		"of what somebody has":          {has, current},
		"of what somebody has, older":   {func(c *cluster) { outdated(c); has(c) }, before},
		"of what its claim changed":     {func(c *cluster) { inPlace(c, asksFor); has(c); imaged(asksFor)(c.pod()); sizeTwo(c.pod()) }, current},
		"of what its claim changed not": {func(c *cluster) { has(c); imaged(asksFor)(c.pod()) }, another},

		"by reference":                   {byRef, current},
		"by reference, older":            {func(c *cluster) { byRef(c); c.edited(c.template(), imaged(newer)) }, before},
		"by reference, older in command": {func(c *cluster) { byRef(c); c.edited(c.template(), commanded) }, before},
		"by reference, of older digests": {func(c *cluster) { byRef(c); c.digests = true; c.edited(c.template(), commanded) }, before},
		"by reference, edited":           {func(c *cluster) { byRef(c); commanded(c.pod()) }, another},
		"by reference, with volumes": {func(c *cluster) {
			byRef(c)
			volumes(c.set())
			volumes(c.member)
			c.add(pods.Resource, mounted(c.pod(), "abcde", "n"))
		}, current},
		"by reference, resumed after an edit": {func(c *cluster) {
			byRef(c)
			c.edited(c.template(), imaged(newer))
			imaged(newer)(c.pod())
			has(c)
		}, current},
		"by reference, resumed before an edit": {func(c *cluster) {
			byRef(c)
			c.edited(c.template(), imaged(newer))
			has(c)
		}, before},
		"by reference, of a template that is gone": {func(c *cluster) { byRef(c); delete(c.objs, Templates.Resource+"/tpl") }, none},

		"of no pool": {func(c *cluster) { delete(c.objs, Sets.Resource+"/pool") }, none},
		"of another sandbox of that name": {func(c *cluster) {
			refs := c.pod().GetOwnerReferences()
			refs[0].UID = "another"
			c.pod().SetOwnerReferences(refs)
		}, none},
		"of nobody": {func(c *cluster) { c.pod().SetOwnerReferences(nil) }, none},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			c.add(Sandboxes.Resource, c.member)
			stamp, err := c.platform().PodRevision(t.Context(), c.pod())
			if err != nil || !stamp.Namespace.Started() {
				t.Fatalf("the stamp is %+v, %v", stamp, err)
			}
			if got := c.revisionNamed(t, stamp.Hash); got != tc.want {
				t.Errorf("it is stamped as %s (%q), want %s", got, stamp.Hash, tc.want)
			}
		})
	}
}

func sizeTwo(pod *unstructured.Unstructured) {
	container(pod)["resources"] = map[string]any{"requests": map[string]any{"cpu": "2000m"}}
}

// revisionNamed says which one a hash names: that in force, the one before it, or neither.
func (c *cluster) revisionNamed(t *testing.T, hash string) string {
	t.Helper()
	set := c.set()
	if hash == "" {
		return "none"
	}
	inForce, key := stored{set: set, template: c.template()}.inForce(), kindSet+"/pool"
	if templateRef(set) != "" {
		key = kindTemplate + "/tpl"
	}
	if hash == hashOf(t, inForce) {
		return "current"
	}
	for _, had := range c.had[key] {
		content, err := Objects{}.Render(had)
		if err != nil {
			t.Fatal(err)
		}
		if content.Hash() == hash {
			return "before"
		}
	}
	return "another"
}

// The Pod of a pool that asks to be enforced says so.
func TestStampsOfPodsOfAStrictPool(t *testing.T) {
	c := newCluster()
	c.set().SetAnnotations(map[string]string{settings.EnforcementKey: "enforce"})
	c.add(Sandboxes.Resource, c.member)
	if stamp, err := c.platform().PodRevision(t.Context(), c.pod()); err != nil || stamp.Enforcement != "enforce" || stamp.Sendable {
		t.Errorf("the stamp is %+v, %v", stamp, err)
	}
}

// What cannot be read, or is not read in time, is not named.
func TestPodsThatCannotBeNamed(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"its sandbox":              func(c *cluster) { c.fail[Sandboxes.Resource+"/m"] = true },
		"its pool":                 func(c *cluster) { c.fail[Sets.Resource+"/pool"] = true },
		"the history":              func(c *cluster) { c.fail["history"] = true },
		"what it runs":             func(c *cluster) { set(c.pod(), "nonsense", "spec", "containers") },
		"what its sandbox is from": func(c *cluster) { set(c.member, "nonsense", "spec", "volumeClaimTemplates") },
	} {
		c := newCluster()
		c.add(Sandboxes.Resource, c.member)
		change(c)
		if stamp, err := c.platform().PodRevision(t.Context(), c.pod()); err == nil || stamp.Hash != "" {
			t.Errorf("without %s the stamp is %+v", name, stamp)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	c := newCluster()
	c.add(Sandboxes.Resource, c.member)
	p := c.platform()
	p.Turns = fair.NewTurns(0, 0)
	if stamp, err := p.PodRevision(ctx, c.pod()); !errors.Is(err, context.DeadlineExceeded) || stamp.Hash != "" {
		t.Errorf("too late the stamp is %+v, %v", stamp, err)
	}
}
