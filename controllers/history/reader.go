package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Reader reads recorded revisions from a cache. It may be late: a revision that
// is missing makes a stale member unknown, and both are refused alike.
type Reader struct {
	client  client.Reader
	decoded *lru.Cache

	mu    sync.Mutex
	lives *lru.Cache
}

// lives are the revisions of one template that this process has seen. Those of a
// template that was deleted go with it, and anybody may delete some; members that
// a pool controller which has not noticed builds of them are stale all the same.
type lives struct{ present, former []agentsandbox.Recorded }

const (
	// decodedSize bounds memory: a decoded revision is some 20 KiB.
	decodedSize = 2048
	// livesSize bounds how many templates' former lives are remembered, formerSize
	// how many revisions of each.
	livesSize, formerSize = 512, 20
)

// NewReader returns a Reader on c, which should be a cache.
func NewReader(c client.Reader) *Reader {
	return &Reader{client: c, decoded: lru.New(decodedSize), lives: lru.New(livesSize)}
}

var _ agentsandbox.History = (*Reader)(nil)

// Revisions returns the template's recorded revisions, the newest first, and
// after them what this process has seen of it, and of earlier templates of that
// name, and is there no more. A revision that cannot be decoded is left out: it
// names nothing.
func (r *Reader) Revisions(ctx context.Context, template *unstructured.Unstructured) ([]agentsandbox.Recorded, error) {
	list, err := revisionsOf(ctx, r.client, template)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	out := make([]agentsandbox.Recorded, 0, len(list))
	for i := range list {
		if recorded, ok := r.decode(&list[i]); ok {
			out = append(out, recorded)
		}
	}
	return append(out, r.remember(template, out)...), nil
}

// remember returns the revisions that were there once.
func (r *Reader) remember(template *unstructured.Unstructured, present []agentsandbox.Recorded) []agentsandbox.Recorded {
	key := types.NamespacedName{Namespace: template.GetNamespace(), Name: template.GetName()}
	r.mu.Lock()
	defer r.mu.Unlock()
	var was lives
	if v, ok := r.lives.Get(key); ok {
		was = v.(lives)
	}
	now := lives{present: slices.Clone(present)}
	for _, seen := range slices.Concat(was.present, was.former) {
		same := func(o agentsandbox.Recorded) bool { return o.Hash == seen.Hash }
		if !slices.ContainsFunc(now.present, same) && !slices.ContainsFunc(now.former, same) && len(now.former) < formerSize {
			now.former = append(now.former, seen)
		}
	}
	r.lives.Add(key, now)
	return now.former
}

func revisionsOf(ctx context.Context, c client.Reader, template *unstructured.Unstructured) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := c.List(ctx, &list, client.InNamespace(template.GetNamespace()),
		client.MatchingLabels{TemplateUIDLabel: string(template.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("listing revisions of template %s/%s: %w", template.GetNamespace(), template.GetName(), err)
	}
	return list.Items, nil
}

// decode remembers its outcome: the API server lets nobody change the data of a
// revision, so that name and UID stand for it for ever.
func (r *Reader) decode(cr *appsv1.ControllerRevision) (agentsandbox.Recorded, bool) {
	key := cr.Namespace + "/" + cr.Name + "/" + string(cr.UID)
	if v, ok := r.decoded.Get(key); ok {
		recorded, ok := v.(agentsandbox.Recorded)
		return recorded, ok
	}
	recorded, err := decode(cr)
	if err != nil {
		r.decoded.Add(key, nil)
		return agentsandbox.Recorded{}, false
	}
	r.decoded.Add(key, recorded)
	return recorded, true
}
