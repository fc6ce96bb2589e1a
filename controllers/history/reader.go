package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Reader reads recorded revisions from a cache. It may be late: a revision that
// is missing makes a stale member unknown, and both are refused alike.
type Reader struct {
	client  client.Reader
	renders platform.Renderer
	decoded *bounded.Cache[string, decoded]

	mu    sync.Mutex
	lives *bounded.Cache[lifeOf, lives]
}

// lifeOf names a template, in all its lives. Those of two kinds can have one name.
type lifeOf struct {
	schema.GroupKind
	types.NamespacedName
}

// decoded is what one revision says; nothing where it cannot be read.
type decoded struct {
	platform.Recorded
	readable bool
}

// lives are the revisions of one template that this process has seen. Those of a
// template that was deleted go with it, and anybody may delete some; members that
// a pool controller which has not noticed builds of them are stale all the same.
type lives struct{ present, former []platform.Recorded }

const (
	// decodedBytes bounds what is decoded: a thousand revisions of usual size.
	decodedBytes = 16 << 20
	// livesBytes bounds the former lives that are remembered, formerSize how many
	// revisions of each template, and formerBytes what they take.
	livesBytes, formerSize, formerBytes = 8 << 20, 20, 1 << 20
)

// bytesOf is about what a revision takes in memory: its template is as large
// again as its rendering.
func bytesOf(r platform.Recorded) int {
	if r.Template == nil {
		return r.Rendered.Bytes()
	}
	return 2 * r.Rendered.Bytes()
}

// NewReader returns a Reader on c, which should be a cache.
func NewReader(c client.Reader, renders platform.Renderer) *Reader {
	return &Reader{client: c, renders: renders, decoded: bounded.NewCache[string, decoded](decodedBytes), lives: bounded.NewCache[lifeOf, lives](livesBytes)}
}

var _ platform.History = (*Reader)(nil)

// Revisions returns the template's recorded revisions, the newest first, and
// after them what this process has seen of it, and of earlier templates of that
// name, and is there no more. A revision that cannot be decoded is left out: it
// names nothing.
func (r *Reader) Revisions(ctx context.Context, template *unstructured.Unstructured) ([]platform.Recorded, error) {
	list, err := revisionsOf(ctx, r.client, template)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	out := make([]platform.Recorded, 0, len(list))
	for i := range list {
		if recorded, ok := r.decode(&list[i]); ok {
			out = append(out, recorded)
		}
	}
	return append(out, r.remember(template, out)...), nil
}

// remember returns the revisions that were there once.
func (r *Reader) remember(template *unstructured.Unstructured, present []platform.Recorded) []platform.Recorded {
	key := lifeOf{template.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: template.GetNamespace(), Name: template.GetName()}}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, _ := r.lives.Get(key)
	var now lives
	bytes := 0
	for _, p := range present {
		if bytes += bytesOf(p); bytes <= formerBytes {
			now.present = append(now.present, p)
		}
	}
	bytes = min(bytes, formerBytes)
	for _, seen := range slices.Concat(was.present, was.former) {
		same := func(o platform.Recorded) bool { return o.Hash == seen.Hash }
		if slices.ContainsFunc(present, same) || slices.ContainsFunc(now.former, same) ||
			len(now.former) == formerSize || bytes+bytesOf(seen) > formerBytes {
			continue
		}
		bytes += bytesOf(seen)
		now.former = append(now.former, seen)
	}
	r.lives.Add(key, now, bytes)
	return now.former
}

func revisionsOf(ctx context.Context, c client.Reader, template *unstructured.Unstructured) ([]appsv1.ControllerRevision, error) {
	var list appsv1.ControllerRevisionList
	err := c.List(ctx, &list, client.InNamespace(template.GetNamespace()),
		client.MatchingLabels{settings.TemplateUIDLabel: string(template.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("listing revisions of template %s/%s: %w", template.GetNamespace(), template.GetName(), err)
	}
	return list.Items, nil
}

// decode remembers its outcome: the API server lets nobody change the data of a
// revision, so that name and UID stand for it for ever.
func (r *Reader) decode(cr *appsv1.ControllerRevision) (platform.Recorded, bool) {
	key := cr.Namespace + "/" + cr.Name + "/" + string(cr.UID)
	if d, known := r.decoded.Get(key); known {
		return d.Recorded, d.readable
	}
	recorded, err := decode(cr, r.renders)
	d := decoded{recorded, err == nil}
	r.decoded.Add(key, d, len(key)+bytesOf(recorded))
	return d.Recorded, d.readable
}
