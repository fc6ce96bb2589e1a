package integration

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/model"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// ending is for what is put right when the story is over.
func (p *player) ending() context.Context { return context.WithoutCancel(p.t.Context()) }

// interfere does what the person of the story does.
func (p *player) interfere(step model.NamedStep) {
	p.t.Helper()
	switch step.Interference {
	case model.MemberEdited:
		p.must(p.judged(func() error {
			edited := builders.SandboxFrom(p.live(p.member(step))).Image("sandbox:v2").Obj()
			_, err := p.Resource(upstream.Sandboxes).Update(p.t.Context(), edited, updateOptions)
			return err
		}))
	case model.MemberTerminating:
		p.terminate(upstream.Sandboxes, p.member(step).GetName())
	case model.PutBack:
		p.putBackInto(p.member(step))
	case model.NodeLeaving:
		p.taintNode()
	default:
		if !p.toPool(step) && !p.toClaim(step) && !p.toPod(step) {
			p.t.Fatalf("nobody can play: %s", step.Text)
		}
	}
}

func (p *player) toPool(step model.NamedStep) bool {
	p.t.Helper()
	switch step.Interference {
	case model.TemplateDeleted:
		p.must(p.Resource(upstream.SandboxTemplates).Delete(p.t.Context(), p.pool.Template, metav1.DeleteOptions{}))
	case model.PoolReplaced:
		p.must(p.Resource(upstream.SandboxWarmPools).Delete(p.t.Context(), p.pool.Name, metav1.DeleteOptions{}))
		p.must(p.Create(p.t.Context(), p.poolObject(p.pool)))
	case model.PoolTerminating:
		p.terminate(upstream.SandboxWarmPools, p.pool.Name)
	case model.PoolSwitched:
		same := builders.MakeTemplate(p.Name, p.otherName()).APIVersion(p.Version).Image(p.pool.Image)
		p.must(p.Create(p.t.Context(), same.Obj()))
		p.switchPool()
		p.switched = p.row.template(p.otherName())
	case model.RestartAsked:
		p.annotate(p.pool, settings.RestartedAtKey, time.Now().UTC().Format(time.RFC3339))
	default:
		return false
	}
	return true
}

func (p *player) toClaim(step model.NamedStep) bool {
	p.t.Helper()
	switch step.Interference {
	case model.ClaimDeleted:
		p.must(p.DeleteClaims(p.t.Context(), step.Claim))
	case model.ClaimReplaced:
		p.must(p.DeleteClaims(p.t.Context(), step.Claim))
		p.former[step.Claim] = p.now[step.Claim]
		p.createClaim(p.pool, step.Claim)
	case model.ClaimElsewhere:
		p.must(p.DeleteClaims(p.t.Context(), step.Claim))
		p.createClaim(scenario.Pool{Name: p.otherName(), Template: p.pool.Template}, step.Claim)
	case model.ClaimTerminating:
		p.terminate(upstream.SandboxClaims, step.Claim)
	case model.PodThere:
		pod := builders.MakePod(p.members[0]).Name(step.Claim).Owners().UID("").Obj()
		pod.SetLabels(nil)
		_, err := p.coreClient("pods").Create(p.t.Context(), pod, createOptions)
		p.must(err)
	default:
		return false
	}
	return true
}

func (p *player) toPod(step model.NamedStep) bool {
	p.t.Helper()
	only := *p.row
	only.members = []*object{p.member(step)}
	m := only.members[0]
	switch step.Interference {
	case model.PodEdited:
		_, err := p.coreClient("pods").Patch(p.t.Context(), podNameOf(m), strategicPatch,
			[]byte(`{"spec":{"containers":[{"name":"c","image":"sandbox:v2"}]}}`), patchOptions)
		p.must(err)
	case model.PodTerminating:
		p.t.Cleanup(func() {
			_, err := p.coreClient("pods").Patch(p.ending(), podNameOf(m), mergePatch, []byte(letGo), patchOptions)
			if err != nil && !isNotFound(err) {
				p.t.Error(err)
			}
		})
		p.patchPod(m, held)
		p.deletePod(m)
	case model.PodFinished:
		only.end("Failed")
	case model.PodGone:
		only.removePods()
	case model.PodForeign:
		only.removePods()
		p.must(only.foreignPod(m))
	case model.PodDebugged:
		only.debug(m)
	default:
		return false
	}
	return true
}

// terminate deletes what a finalizer keeps for now.
func (p *player) terminate(r schema.GroupResource, name string) {
	p.t.Helper()
	p.t.Cleanup(func() {
		_, err := p.Resource(r).Patch(p.ending(), name, mergePatch, []byte(letGo), patchOptions)
		if err != nil && !isNotFound(err) {
			p.t.Error(err)
		}
	})
	p.patch(r, name, held)
	p.must(p.Resource(r).Delete(p.t.Context(), name, metav1.DeleteOptions{}))
}

// putBackInto makes a member of what a claim had.
func (p *player) putBackInto(used *object) {
	p.t.Helper()
	pool := p.get(upstream.SandboxWarmPools, p.pool.Name)
	p.putBackUnenforced(used.GetName(), string(marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": []any{builders.ControllerRef(pool)},
		"labels": map[string]any{
			builders.LabelPool: builders.NameHash(pool.GetName()), builders.LabelTemplateRef: builders.NameHash(p.pool.Template),
		},
	}})))
}
