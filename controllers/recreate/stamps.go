package recreate

import (
	"context"
	"encoding/json"
	"errors"
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
		return errors.Join(p.label(ctx, s.members[i], s.revisions[i]), p.stampPod(ctx, s, i))
	})
	return again, err
}

// stampPod: what was never written to since it was born has a Pod like itself.
func (p *Pools) stampPod(ctx context.Context, s *situation, i int) error {
	if s.Members[i].Edited {
		return nil
	}
	pod, err := p.view.podOf(ctx, s.members[i])
	if err != nil || pod == nil || pod.GetLabels()[platform.StampKey] != "" {
		return err
	}
	return p.label(ctx, pod, s.revisions[i])
}

func (p *Pools) label(ctx context.Context, obj *unstructured.Unstructured, revision string) error {
	if !p.leads() {
		return errNotLeading
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(),
		"labels": map[string]any{platform.StampKey: revision},
	}})
	if err != nil {
		return fmt.Errorf("marshalling a stamp: %w", err)
	}
	err = p.client.Patch(ctx, named(obj), client.RawPatch(types.MergePatchType, patch))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("stamping %s %s: %w", obj.GetKind(), obj.GetName(), err)
}
