package agentsandbox

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// memoBytes bounds all renderings of a Memo: a thousand templates of usual
	// size.
	memoBytes = 16 << 20
	// memoEach bounds the renderings of one template, the last ones that were made: the
	// one in force, and those that late caches still have.
	memoEach = 3
)

// Memo remembers renderings. The zero value is ready to use.
type Memo struct {
	once      sync.Once
	templates *bounded.Cache[types.UID, []rendering]
}

// rendering is of one spec of a template, and depends on nothing else. Neither
// generation nor resourceVersion names a spec: when etcd is restored from a snapshot,
// both go back, and the next edits get those of edits that are no more.
type rendering struct {
	spec      any
	blueprint revision.Blueprint
	bytes     int
}

// Render returns RenderMember(template), from memory when it was asked before.
func (m *Memo) Render(template *unstructured.Unstructured) (revision.Blueprint, error) {
	uid := template.GetUID()
	m.once.Do(func() { m.templates = bounded.NewCache[types.UID, []rendering](memoBytes) })
	known, _ := m.templates.Get(uid)
	spec := template.Object["spec"]
	for _, r := range known {
		if fields.Equal(r.spec, spec) {
			return r.blueprint, nil
		}
	}
	b, err := RenderMember(template)
	if err != nil {
		return b, err
	}
	// Others may hold the template.
	spec = runtime.DeepCopyJSONValue(spec)
	known = append([]rendering{{spec, b, b.Bytes() + fields.Bytes(spec)}}, known...)
	known = known[:min(len(known), memoEach)]
	bytes := 0
	for _, r := range known {
		bytes += r.bytes
	}
	m.templates.Add(uid, known, bytes)
	return b, nil
}

// pathsBytes bounds the parsed lists of paths.
const pathsBytes = 2 << 20

// pathsMemo remembers the parsed lists of paths by their text.
type pathsMemo struct {
	once  sync.Once
	lists *bounded.Cache[string, revision.PathSet]
}

// injected is what a pool says of injected paths, parsed once.
func (m *pathsMemo) injected(pool *unstructured.Unstructured) revision.PathSet {
	if pool == nil {
		return revision.PathSet{}
	}
	annotations := settings.Pool(pool.GetAnnotations())
	list := annotations[settings.InjectedPathsKey]
	if list == "" || len(list) > revision.MaxPathBytes {
		return annotations.InjectedPaths()
	}
	m.once.Do(func() { m.lists = bounded.NewCache[string, revision.PathSet](pathsBytes) })
	set, known := m.lists.Get(list)
	if !known {
		set = annotations.InjectedPaths()
		// A parsed path is some times its text.
		m.lists.Add(list, set, 16*len(list))
	}
	return set
}
