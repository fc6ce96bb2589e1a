package agentsandbox

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

// guesses are reads that will be asked for if what is likely is so. They begin beside
// everything else, and save a round of reads when the guess is right. A wrong one is
// never looked at: what is read is decided by objects as they are stored.
type guesses map[guess]func() (*unstructured.Unstructured, error)

// guess names one object.
type guess struct {
	schema.GroupResource
	namespace, name string
}

// guessed begins what a bind will read: the sandbox that the claim would have from a
// cold start, and the node that a cache shows the member's Pod on.
func (p *Platform) guessed(ctx context.Context, w platform.Write, m freshness.Member) guesses {
	all := guesses{}
	if w.Operation != freshness.Bind {
		return all
	}
	namespace := w.Judged().GetNamespace()
	if w.Claim.Name != "" && w.Claim.Name != m.Name {
		p.begin(ctx, all, guess{Sandboxes, namespace, w.Claim.Name})
	}
	if p.CachedNode != nil {
		if node := p.CachedNode(namespace, m.PodName); node != "" {
			p.begin(ctx, all, guess{nodes, "", node})
		}
	}
	return all
}

func (p *Platform) begin(ctx context.Context, all guesses, of guess) {
	all[of] = platform.Begin(func() (*unstructured.Unstructured, error) {
		return p.Get(ctx, of.GroupResource, of.namespace, of.name)
	})
}

// read returns what was guessed, and reads everything else. That takes another round, so
// the namespace is read in it, too: a refusal needs its mode, and would take a third.
func (g *readGroup) read(gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	if begun, ok := g.guesses[guess{gr, namespace, name}]; ok {
		return begun()
	}
	g.labels.Begin()
	return g.p.Get(g.ctx, gr, namespace, name)
}
