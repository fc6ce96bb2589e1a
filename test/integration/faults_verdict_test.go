package integration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// finish checks, with the caches current again, what has come of it all.
func (r *row) finish() {
	r.must(r.WaitClaims(r.t.Context(), within, r.claims...))
	if r.fault.after != nil {
		r.fault.after(r)
	}
	r.filled(r.pool, r.current(r.pool.Template))
	if r.other != nil {
		r.filled(*r.other, r.current(r.other.Template))
	}
	for _, name := range r.claims {
		r.wellServed(r.get(upstream.SandboxClaims, name))
	}
	fmt.Println(r.line(r.judge()))
	r.drain()
}

// current is the image of a template as it is stored.
func (r *row) current(template string) string {
	r.t.Helper()
	return scenario.ImageOf(r.template(template))
}

// wellServed checks that a claim has exactly one live sandbox, which is fresh
// and runs in a live Pod of its own.
func (r *row) wellServed(claim *object) {
	r.t.Helper()
	owned := r.owned(claim)
	if len(owned) != 1 {
		r.t.Errorf("claim %s has %d live sandboxes, want 1", claim.GetName(), len(owned))
		return
	}
	template, _, _ := unstructured.NestedString(claim.Object, "spec", "sandboxTemplateRef", "name")
	if template == "" {
		pool, _, _ := unstructured.NestedString(claim.Object, "spec", "warmPoolRef", "name")
		template, _, _ = unstructured.NestedString(r.get(upstream.SandboxWarmPools, pool).Object, "spec", "sandboxTemplateRef", "name")
	}
	sandbox, want := owned[0], r.current(template)
	if r.fault.served != "" && slices.Contains(r.claims, claim.GetName()) {
		want = r.fault.served
	}
	if got := scenario.ImageOf(sandbox); got != want {
		r.t.Errorf("sandbox %s of claim %s says image %s, want %s", sandbox.GetName(), claim.GetName(), got, want)
	}
	name := podNameOf(sandbox)
	pod := r.pod(name)
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	owner := metav1.GetControllerOf(pod)
	switch {
	case podImage(pod) != want:
		r.t.Errorf("claim %s runs image %s in pod %s, want %s", claim.GetName(), podImage(pod), name, want)
	case owner == nil || owner.UID != sandbox.GetUID():
		r.t.Errorf("claim %s runs in pod %s, which is not its sandbox's", claim.GetName(), name)
	case pod.GetDeletionTimestamp() != nil || phase != "Running":
		r.t.Errorf("claim %s runs in pod %s, which is dead (%s)", claim.GetName(), name, phase)
	}
}

func podNameOf(sandbox *object) string {
	return cmp.Or(sandbox.GetAnnotations()[builders.AnnotationPodName], sandbox.GetName())
}

// filled waits until a pool has exactly the members that it wants, all of which
// can be taken and run the image, and returns them.
func (r *row) filled(p scenario.Pool, image string) []*object {
	r.t.Helper()
	if r.w.bare {
		return r.filledBare(p, image)
	}
	r.full(p, image)
	return r.present(r.t.Context(), p)
}

func (r *row) filledBare(p scenario.Pool, image string) []*object {
	r.t.Helper()
	var members []*object
	r.eventually("pool "+p.Name+" full of "+image, func(ctx context.Context) (string, bool) {
		members = r.present(ctx, p)
		var wrong []string
		for _, pod := range members {
			phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
			if phase != "Running" || podImage(pod) != image {
				wrong = append(wrong, fmt.Sprintf("%s (%s %s)", pod.GetName(), phase, podImage(pod)))
			}
		}
		return fmt.Sprintf("%d members, wrong ones: %v", len(members), wrong), len(members) == p.Replicas && len(wrong) == 0
	})
	return members
}

// present lists the pool's members, but for those that are being deleted: what
// deletes them may be held for a while, and nobody takes them.
func (r *row) present(ctx context.Context, p scenario.Pool) []*object {
	r.t.Helper()
	client := r.memberClient()
	list, err := client.List(ctx, metav1.ListOptions{})
	r.must(err)
	var out []*object
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner != nil && owner.Kind == "SandboxWarmPool" && owner.Name == p.Name && list.Items[i].GetDeletionTimestamp() == nil {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// judge reports what was bound wrongly. The judge knows Sandboxes: in releases
// whose members are bare Pods it sees a cold start where one is taken, and the
// row looks at the Pods themselves.
func (r *row) judge() (ready int, latencies []time.Duration) {
	r.t.Helper()
	report := r.report()
	for _, b := range report.Findings {
		if b.Namespace == r.Name {
			r.wrong(b)
		}
	}
	for _, c := range report.Claims {
		if c.Namespace == r.Name && slices.Contains(r.claims, c.Claim.Name) && c.ReadyRV != "" {
			ready++
			latencies = append(latencies, c.ReadySeen.Sub(c.CreatedSeen))
		}
	}
	slices.Sort(latencies)
	return ready, latencies
}

// wrong reports a bind that is not good enough.
func (r *row) wrong(b checker.Bind) {
	r.t.Helper()
	switch {
	case r.w.bare && (b.Class == checker.Duplicate || b.Class == checker.UsedMember):
		r.t.Errorf("not one to one: %s", b)
	case !r.w.bare && b.Class != checker.Raced && b.Class != checker.Tolerated:
		r.t.Errorf("not fresh: %s", b)
	}
}

func (r *row) line(ready int, latencies []time.Duration) string {
	var p50, slowest time.Duration
	if n := len(latencies); n > 0 {
		p50, slowest = latencies[(n-1)/2], latencies[n-1]
	}
	return fmt.Sprintf("ways: release=%s way=%s claims=%d ready=%d p50=%.2fs max=%.2fs reason=%s",
		r.w.release, strings.ReplaceAll(r.name, " ", "-"), len(r.claims), ready, p50.Seconds(), slowest.Seconds(), r.refusals(r.want()))
}

// drain takes all that the pools have: what stands there has to be given out.
func (r *row) drain() {
	r.t.Helper()
	if r.w.bare {
		r.drainBare()
		return
	}
	for _, p := range r.pools() {
		probe, err := r.Ghosts(r.t.Context(), p, "probe-"+p.Name+"-")
		r.must(err)
		if len(probe.Ghosts) > 0 || probe.Members != p.Replicas {
			r.t.Errorf("pool %s with %d members, of which nobody is given %v; want %d and none",
				p.Name, probe.Members, probe.Ghosts, p.Replicas)
		}
	}
}

func (r *row) pools() []scenario.Pool {
	if r.other == nil {
		return []scenario.Pool{r.pool}
	}
	return []scenario.Pool{r.pool, *r.other}
}

func (r *row) drainBare() {
	r.t.Helper()
	for _, p := range r.pools() {
		names := scenario.Names("probe-"+p.Name+"-", p.Replicas)
		r.stage.claim(p, names...)
		for _, name := range names {
			sandbox := r.get(upstream.Sandboxes, name)
			pod := sandbox.GetAnnotations()[builders.AnnotationPodName]
			if !strings.HasPrefix(pod, p.Name+"-") {
				r.t.Errorf("claim %s runs in pod %q, want a member of pool %s", name, pod, p.Name)
			}
			r.wellServed(r.get(upstream.SandboxClaims, name))
		}
	}
}
