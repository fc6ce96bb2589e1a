package agentsandbox

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
)

// paged answers lists in pages of one.
type paged struct {
	client.Reader
	names    []string
	versions []string
	limits   []int64
}

func (p *paged) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	version := ""
	if o.Raw != nil {
		version = o.Raw.ResourceVersion
	}
	p.versions, p.limits = append(p.versions, version), append(p.limits, o.Limit)
	at := 0
	if o.Continue != "" {
		at = slices.Index(p.names, o.Continue)
	}
	list := into.(*unstructured.UnstructuredList)
	list.Items = []unstructured.Unstructured{*builders.MakePool("ns", p.names[at]).Obj()}
	if at+1 < len(p.names) {
		list.SetContinue(p.names[at+1])
	}
	return nil
}

// Without a cache beside it a list is read page by page, as it is stored, and with one out
// of the API server's memory, all at once.
func TestListsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		cache   client.Reader
		version string
		limit   int64
	}{
		"no cache": {nil, "", platform.PageSize},
		"a cache":  {newLister(), "0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &paged{names: []string{"a", "b", "c"}}
			list, err := (&Lister{Cache: tc.cache, API: p, Resolver: newStore()}).pools(t.Context(), "ns")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, pool := range list {
				names = append(names, pool.GetName())
			}
			if diff := cmp.Diff(p.names, names); diff != "" {
				t.Errorf("pools (-want,+got):\n%s", diff)
			}
			for i := range p.versions {
				if p.versions[i] != tc.version || p.limits[i] != tc.limit {
					t.Errorf("page %d: at resource version %q up to %d, want %q and %d", i, p.versions[i], p.limits[i], tc.version, tc.limit)
				}
			}
		})
	}
	going := builders.MakePool("ns", "going").Deleting(time.Unix(1, 0)).Obj()
	shown := &Lister{Pools: func(context.Context, string) ([]*unstructured.Unstructured, error) {
		return []*unstructured.Unstructured{testPool, going}, nil
	}}
	if list, err := shown.pools(t.Context(), "ns"); err != nil || len(list) != 1 || list[0] != testPool {
		t.Errorf("of the cached ones %v stay, error %v", list, err)
	}
}
