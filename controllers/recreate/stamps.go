package recreate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// stampsAtOnce bounds how many members of a pool are stamped in one step, so
	// that a store full of members from before Freshbind is not written to all at
	// once. A next leader goes on with what has no stamp yet.
	stampsAtOnce = 50
	// nextStamps is the pause between two steps.
	nextStamps = 250 * time.Millisecond
)

// stamp names the revision on members, and on their Pods, that came before the
// webhook did. It returns when to come back, 0 for never.
func (p *Pools) stamp(ctx context.Context, s *situation) (time.Duration, error) {
	var missing []int
	for i, member := range s.members {
		if member.GetLabels()[platform.StampKey] == "" && s.revisions[i] != "" && !s.Members[i].Leaving {
			missing = append(missing, i)
		}
	}
	again := time.Duration(0)
	if len(missing) > stampsAtOnce {
		missing, again = missing[:stampsAtOnce], nextStamps
	}
	err := slowStart(ctx, len(missing), func(ctx context.Context, k int) error {
		i := missing[k]
		// The member's comes last: one that has it is not looked at again, whoever
		// leads next.
		if done, err := p.stampPod(ctx, s, i); err != nil || !done {
			return err
		}
		_, err := p.label(ctx, s.members[i], s.revisions[i])
		return err
	})
	return again, err
}

// stampPod: what was never written to since it was born has a Pod like itself.
// False when the Pod was written to meanwhile, which brings its pool back here.
func (p *Pools) stampPod(ctx context.Context, s *situation, i int) (done bool, err error) {
	if s.Members[i].Edited {
		return true, nil
	}
	pod, err := p.view.podOf(ctx, s.members[i])
	if err != nil || pod == nil || pod.GetLabels()[platform.StampKey] != "" {
		return err == nil, err
	}
	return p.label(ctx, pod, s.revisions[i])
}

// label writes the stamp; false when the object is another one by now.
func (p *Pools) label(ctx context.Context, obj *unstructured.Unstructured, revision string) (done bool, err error) {
	if !p.leads() {
		return false, errNotLeading
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(),
		"labels": map[string]any{platform.StampKey: revision},
	}})
	if err != nil {
		return false, fmt.Errorf("marshalling a stamp: %w", err)
	}
	switch err := p.client.Patch(ctx, named(obj), client.RawPatch(types.MergePatchType, patch)); {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	default:
		return false, fmt.Errorf("stamping %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
}
