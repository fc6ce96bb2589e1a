package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

// setTenant is the hostile tenant in one of its namespaces, with OpenKruise Agents.
type setTenant struct {
	*tenant
	*warmpool.SetPool
}

func (*kruiseAgents) attacks() []attack {
	return []attack{attackByHand, attackImage, attackDebug, attackReuse, attackEdit, attackOvertake, attackEditedReturn}
}

func (k *kruiseAgents) newAttackFuncs(ctx context.Context, _ *world, _ options, o warmpool.PoolOptions, of *tenant) (map[attack]attackFunc, error) {
	p, err := k.CreateSet(ctx, o)
	if err != nil {
		return nil, err
	}
	of.pool = p
	return (&setTenant{of, p}).attackFuncs(), nil
}

func (t *setTenant) attackFuncs() map[attack]attackFunc {
	return map[attack]attackFunc{
		attackByHand:       t.byHand,
		attackImage:        t.image,
		attackDebug:        t.debug,
		attackReuse:        t.reuse,
		attackEdit:         t.edit,
		attackOvertake:     t.overtake,
		attackEditedReturn: t.editedReturn,
	}
}

// byHand sends what takes a member, for nobody that any cache knows.
func (t *setTenant) byHand(ctx context.Context, members []scenario.Member, _ uint64) error {
	if err := t.renew(ctx); err != nil {
		return err
	}
	for _, m := range members {
		box, err := t.Sandboxes().Get(ctx, m.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get sandbox: %w", err)
		}
		_, err = t.Sandboxes().Update(ctx, takenBy(box, "user-"+t.names(1)[0]), metav1.UpdateOptions{})
		if err := tried(err); err != nil {
			return err
		}
	}
	return nil
}

// takenBy is a member after the write that takes it.
func takenBy(box *unstructured.Unstructured, user string) *unstructured.Unstructured {
	out := box.DeepCopy()
	out.SetOwnerReferences(nil)
	labels, annotations := maps.Clone(out.GetLabels()), map[string]string{}
	maps.Copy(annotations, out.GetAnnotations())
	labels[warmpool.LabelClaimed] = "true"
	annotations[warmpool.KeyOwner], annotations[warmpool.KeyLock] = user, "lock-of-"+user
	annotations[fakekruise.Group+"/claim-timestamp"] = time.Now().Format(time.RFC3339)
	out.SetLabels(labels)
	out.SetAnnotations(annotations)
	return out
}

// edit is somebody with an editor: members become what no template says.
func (t *setTenant) edit(ctx context.Context, members []scenario.Member, _ uint64) error {
	for _, m := range members {
		if err := t.patch(ctx, m.Name, otherImage); err != nil {
			return err
		}
	}
	return nil
}

var otherImage = map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
	"containers": []any{map[string]any{"name": "c", "image": oddImage}},
}}}}

func (t *setTenant) patch(ctx context.Context, sandbox string, change map[string]any) error {
	raw, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("make patch: %w", err)
	}
	_, err = t.Sandboxes().Patch(ctx, sandbox, types.MergePatchType, raw, metav1.PatchOptions{})
	return tried(err)
}

// overtake gives somebody what another one has.
func (t *setTenant) overtake(ctx context.Context, _ []scenario.Member, _ uint64) error {
	got, err := t.Ask(ctx, "user-"+t.names(1)[0])
	if err != nil {
		return err
	}
	thief := map[string]any{"metadata": map[string]any{"annotations": map[string]any{warmpool.KeyOwner: "user-" + t.names(1)[0]}}}
	return t.patch(ctx, got.Sandbox.GetName(), thief)
}

// reuse makes what somebody has a member again.
func (t *setTenant) reuse(ctx context.Context, _ []scenario.Member, _ uint64) error {
	got, err := t.Ask(ctx, "user-"+t.names(1)[0])
	if err != nil {
		return err
	}
	set, err := t.Resource(fakekruise.Sets).Get(ctx, warmpool.PoolName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pool: %w", err)
	}
	return t.patch(ctx, got.Sandbox.GetName(), map[string]any{"metadata": map[string]any{
		"ownerReferences": []any{map[string]any{
			"apiVersion": set.GetAPIVersion(), "kind": set.GetKind(), "name": set.GetName(), "uid": string(set.GetUID()), "controller": true,
		}},
		"labels":      map[string]any{warmpool.LabelClaimed: "false", warmpool.LabelClaim: nil},
		"annotations": map[string]any{warmpool.KeyOwner: nil, warmpool.KeyLock: nil},
	}})
}

// editedReturn lets go of what is not any more what the pool makes. It is refused to the
// pool, and then it goes.
func (t *setTenant) editedReturn(ctx context.Context, _ []scenario.Member, _ uint64) error {
	got, err := t.Ask(ctx, "user-"+t.names(1)[0])
	if err != nil {
		return err
	}
	used := got.Sandbox.GetName()
	if err := t.patch(ctx, used, otherImage); err != nil {
		return err
	}
	t.Leave(ctx, got.Sandbox)
	err = scenario.Poll(ctx, settleWithin, func(ctx context.Context) (bool, error) {
		_, err := t.Sandboxes().Get(ctx, used, metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return err != nil, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("wait for the end of sandbox %s/%s, which was refused to its pool: %w", t.In(), used, err)
	}
	return nil
}
