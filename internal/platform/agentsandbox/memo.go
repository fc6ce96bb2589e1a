package agentsandbox

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// memoBytes bounds all renderings of a Memo: a thousand templates of usual
	// size.
	memoBytes = 16 << 20
	// memoEach bounds the renderings of one template: the one in force, and those
	// that late caches still have.
	memoEach = 3
)

// Memo remembers renderings. The zero value is ready to use.
type Memo struct {
	once      sync.Once
	templates *bounded.Cache[types.UID, []rendering]
}

// rendering is of one generation of a template, in one version of its API.
// Its UID and its generation name a spec for ever, with a status subresource and
// without one: every write that changes anything but metadata is another
// generation, and no annotation is.
type rendering struct {
	generation int64
	apiVersion string
	blueprint  revision.Blueprint
}

// Render returns RenderMember(template), from memory when it was asked before.
func (m *Memo) Render(template *unstructured.Unstructured) (revision.Blueprint, error) {
	uid, generation, apiVersion := template.GetUID(), template.GetGeneration(), template.GetAPIVersion()
	if uid == "" || generation == 0 {
		return RenderMember(template)
	}
	m.once.Do(func() { m.templates = bounded.NewCache[types.UID, []rendering](memoBytes) })
	known, _ := m.templates.Get(uid)
	for _, r := range known {
		if r.generation == generation && r.apiVersion == apiVersion {
			return r.blueprint, nil
		}
	}
	b, err := RenderMember(template)
	if err != nil {
		return b, err
	}
	known = append([]rendering{{generation, apiVersion, b}}, known...)
	slices.SortStableFunc(known, func(a, b rendering) int { return cmp.Compare(b.generation, a.generation) })
	known = known[:min(len(known), memoEach)]
	bytes := 0
	for _, r := range known {
		bytes += r.blueprint.Bytes()
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
	said := settings.Pool(pool.GetAnnotations())
	list := said[settings.InjectedPathsKey]
	if list == "" || len(list) > revision.MaxPathBytes {
		return said.InjectedPaths()
	}
	m.once.Do(func() { m.lists = bounded.NewCache[string, revision.PathSet](pathsBytes) })
	set, known := m.lists.Get(list)
	if !known {
		set = said.InjectedPaths()
		// A parsed path is some times its text.
		m.lists.Add(list, set, 16*len(list))
	}
	return set
}
