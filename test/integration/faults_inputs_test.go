package integration

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// inputFaults: the controllers do not see what becomes of templates and pools.
var inputFaults = map[string]faultCase{
	"template edited": {
		reason:  freshness.StaleRevision,
		provoke: func(r *row) { r.image(r.pool, "sandbox:v2"); r.claim() },
	},
	"template deleted and created again": {
		reason: freshness.UnknownRevision,
		provoke: func(r *row) {
			r.must(r.Resource(upstream.SandboxTemplates).Delete(r.t.Context(), r.pool.Template, metav1.DeleteOptions{}))
			r.claim()
			r.refused(freshness.TemplateGone)
			r.must(r.Create(r.t.Context(), builders.MakeTemplate(r.Name, r.pool.Template).APIVersion(r.Version).Image("sandbox:v2").Obj()))
		},
	},
	"template A B A": {
		reason: freshness.StaleRevision, strategy: scenario.OnReplenish, rollout: scenario.Recreate,
		prepare: func(r *row) { r.annotate(r.pool, settings.RepairKey, "false") },
		provoke: func(r *row) {
			r.image(r.pool, "sandbox:v2")
			r.claim()
			r.refused(freshness.StaleRevision)
			r.noneTaken()
			r.image(r.pool, "sandbox:v1")
		},
	},
	"template A B A, repaired under B": {
		reason: freshness.StaleRevision, strategy: scenario.OnReplenish, rollout: scenario.Recreate, served: "sandbox:v2",
		provoke: func(r *row) {
			r.image(r.pool, "sandbox:v2")
			r.claim()
			r.must(r.WaitClaims(r.t.Context(), within, r.claims...))
			r.noneTaken()
			r.image(r.pool, "sandbox:v1")
		},
	},
	"born of an old template": {
		reason: freshness.StaleRevision, operation: freshness.Birth,
		provoke: func(r *row) {
			r.image(r.pool, "sandbox:v2")
			r.deleteMember(r.members[0])
			r.refused(freshness.StaleRevision)
			r.noneBorn("sandbox:v1")
		},
		after: func(r *row) { r.stage.claim(r.pool, "late"); r.claims = append(r.claims, "late") },
	},
	"pool switched under Recreate": {
		reason:  freshness.TemplateMismatch,
		reasons: map[string]freshness.Reason{"v0.4.6": freshness.PoolMismatch},
		prepare: (*row).anotherTemplate,
		provoke: func(r *row) { r.switchPool(); r.claim() },
		after:   func(r *row) { r.pool.Template = r.otherName() },
	},
	"pool switched under OnReplenish": {
		reason: freshness.TemplateMismatch, strategy: scenario.OnReplenish,
		reasons: map[string]freshness.Reason{"v0.4.6": freshness.PoolMismatch},
		prepare: (*row).anotherTemplate,
		provoke: func(r *row) { r.switchPool(); r.claim() },
		after:   func(r *row) { r.pool.Template = r.otherName() },
	},
	"pool switched and nobody comes": {
		strategy: scenario.OnReplenish,
		prepare:  (*row).anotherTemplate,
		provoke:  (*row).switchPool,
		after:    func(r *row) { r.pool.Template = r.otherName() },
	},
	"pool deleted and created again": {
		reason: freshness.PoolGone,
		provoke: func(r *row) {
			r.must(r.Resource(upstream.SandboxWarmPools).Delete(r.t.Context(), r.pool.Name, metav1.DeleteOptions{}))
			r.must(r.Create(r.t.Context(), r.poolObject(r.pool)))
			r.claim()
		},
		after: func(r *row) { r.noneTaken(); r.collectMembers() },
	},
	"member edited": {
		reason: freshness.UnknownRevision, strategy: scenario.OnReplenish, rollout: scenario.Recreate,
		provoke: func(r *row) { r.editMembers("other:v1"); r.claim() },
	},
	"member edited to the template over an old pod": {
		reason: freshness.StaleRevision, strategy: scenario.OnReplenish, rollout: scenario.Recreate,
		impossible: map[string]string{barePods: "the member is the pod"},
		provoke: func(r *row) {
			r.image(r.pool, "sandbox:v2")
			r.editMembers("sandbox:v2")
			r.claim()
		},
	},
	"node being deleted":     nodeFault((*row).deleteNode),
	"node taint that evicts": nodeFault((*row).taintNode),
	"node not ready":         nodeFault((*row).breakNode),
	"node left and nobody comes": {
		template: (*row).placeMembers, provoke: (*row).taintNode, after: (*row).offNode,
	},
}

func nodeFault(leave func(*row)) faultCase {
	return faultCase{
		reason: freshness.NodeLeaving, template: (*row).placeMembers, after: (*row).offNode,
		provoke: func(r *row) { leave(r); r.claim() },
	}
}

func (r *row) anotherTemplate() {
	r.must(r.Create(r.t.Context(), builders.MakeTemplate(r.Name, r.otherName()).APIVersion(r.Version).Image("other:v1").Obj()))
}

func (r *row) switchPool() {
	r.patch(upstream.SandboxWarmPools, r.pool.Name, `{"spec":{"sandboxTemplateRef":{"name":"`+r.otherName()+`"}}}`)
}

// noneBorn checks that Freshbind let the pool have no further member of that image.
func (r *row) noneBorn(image string) {
	r.t.Helper()
	for _, m := range r.present(r.t.Context(), r.pool) {
		before := slices.ContainsFunc(r.members, func(o *object) bool { return o.GetUID() == m.GetUID() })
		if before || r.imageOf(m) != image {
			continue
		}
		allowed := r.decisions(func(d decision) bool { return d.Sandbox == m.GetName() && d.Verdict == "allow" })
		if len(allowed) > 0 {
			r.t.Errorf("member %s of image %s was born: %+v", m.GetName(), image, allowed)
			continue
		}
		r.t.Logf("member %s of image %s was born without an answer in time, as its webhook's failurePolicy Ignore has it", m.GetName(), image)
	}
}

func (r *row) imageOf(member *object) string {
	if r.w.bare {
		return podImage(member)
	}
	return scenario.ImageOf(member)
}

// deleteMember is what somebody with every right does. Freshbind may have been first.
func (r *row) deleteMember(member *object) {
	r.t.Helper()
	err := r.memberClient().Delete(r.t.Context(), member.GetName(), metav1.DeleteOptions{})
	r.must(client.IgnoreNotFound(err))
}

// editMembers gives all members another image, which no Pod of theirs follows. Those that
// Freshbind has deleted meanwhile are as good as edited: nobody gets them either.
func (r *row) editMembers(image string) {
	r.t.Helper()
	for _, m := range r.members {
		var err error
		if r.w.bare {
			_, err = r.coreClient("pods").Patch(r.t.Context(), m.GetName(), strategicPatch,
				[]byte(`{"spec":{"containers":[{"name":"c","image":"`+image+`"}]}}`), patchOptions)
		} else {
			err = r.judged(func() error {
				now, err := r.memberClient().Get(r.t.Context(), m.GetName(), getOptions)
				if err != nil {
					return err
				}
				_, err = r.Resource(upstream.Sandboxes).Update(r.t.Context(), builders.SandboxFrom(now).Image(image).Obj(), updateOptions)
				return err
			})
		}
		r.must(client.IgnoreNotFound(err))
	}
}

// collectMembers deletes what belongs to a pool that is gone, as the garbage
// collector does, which does not run here.
func (r *row) collectMembers() {
	r.t.Helper()
	pool := r.get(upstream.SandboxWarmPools, r.pool.Name)
	members := r.memberClient()
	r.eventually("members of the former pool collected", func(ctx context.Context) (string, bool) {
		list, err := members.List(ctx, metav1.ListOptions{})
		r.must(err)
		left := 0
		for i := range list.Items {
			owner := metav1.GetControllerOf(&list.Items[i])
			if owner == nil || owner.Kind != "SandboxWarmPool" || owner.UID == pool.GetUID() {
				continue
			}
			left++
			if err := members.Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{}); err != nil && !isNotFound(err) {
				return err.Error(), false
			}
		}
		return fmt.Sprintf("%d left", left), left == 0
	})
}
