package history

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/fields"
)

const (
	// pendingEach bounds how many versions of one template wait.
	pendingEach = 20
	// pendingBytes bounds what versions need that are not in force any more. The
	// latest version of each template is the watch's own and costs nothing.
	pendingBytes = 16 << 20
)

// pending are the versions that the watch has delivered and that are not yet
// recorded, those of each template in the order of the watch. Whoever writes
// more than there is room for loses the oldest of their own: of the namespace with the most
// bytes the template with the most.
type pending struct {
	mu       sync.Mutex
	versions map[types.NamespacedName][]pendingVersion
	bytes    int
}

type pendingVersion struct {
	template *unstructured.Unstructured
	bytes    int
}

func newPending() *pending {
	return &pending{versions: map[types.NamespacedName][]pendingVersion{}}
}

// add notes a template's latest version.
func (p *pending) add(key types.NamespacedName, template *unstructured.Unstructured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.versions[key]
	if n := len(list); n > 0 {
		list[n-1].bytes = fields.Bytes(list[n-1].template.Object)
		p.bytes += list[n-1].bytes
	}
	p.versions[key] = append(list, pendingVersion{template: template})
	if len(list) == pendingEach {
		p.dropOldest(key)
	}
	for p.bytes > pendingBytes {
		p.dropOldest(p.largest())
	}
}

// dropOldest drops a version of a template that has several. It has mu held.
func (p *pending) dropOldest(key types.NamespacedName) {
	p.bytes -= p.versions[key][0].bytes
	p.versions[key] = p.versions[key][1:]
}

// largest is the template to drop a version of. It has mu held.
func (p *pending) largest() types.NamespacedName {
	namespaces, templates := map[string]int{}, map[types.NamespacedName]int{}
	for key, list := range p.versions {
		for _, v := range list {
			namespaces[key.Namespace] += v.bytes
			templates[key] += v.bytes
		}
	}
	return slices.MaxFunc(slices.Collect(maps.Keys(templates)), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(namespaces[a.Namespace], namespaces[b.Namespace]), cmp.Compare(templates[a], templates[b]), cmp.Compare(b.String(), a.String()))
	})
}

// of returns the template's versions, the oldest first.
func (p *pending) of(key types.NamespacedName) []*unstructured.Unstructured {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, v := range p.versions[key] {
		out = append(out, v.template)
	}
	return out
}

// done forgets versions that are recorded.
func (p *pending) done(key types.NamespacedName, recorded []*unstructured.Unstructured) {
	p.keep(key, func(v pendingVersion) bool { return !slices.Contains(recorded, v.template) })
}

// forget drops what waits for a template that is gone.
func (p *pending) forget(key types.NamespacedName) {
	p.keep(key, func(pendingVersion) bool { return false })
}

func (p *pending) keep(key types.NamespacedName, stays func(pendingVersion) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []pendingVersion
	for _, v := range p.versions[key] {
		if stays(v) {
			list = append(list, v)
		} else {
			p.bytes -= v.bytes
		}
	}
	if p.versions[key] = list; len(list) == 0 {
		delete(p.versions, key)
	}
}
