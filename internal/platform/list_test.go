package platform

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages answers lists of n objects, and fails after some pages.
type pages struct {
	client.Reader
	n, fail int
	asked   []string
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	p.asked = append(p.asked, o.Continue)
	if p.fail > 0 && len(p.asked) > p.fail {
		return errors.New("the test ends here")
	}
	list := into.(*unstructured.UnstructuredList)
	from, _ := strconv.Atoi(o.Continue)
	for i := from; i < min(p.n, from+int(o.Limit)); i++ {
		var u unstructured.Unstructured
		u.SetName(strconv.Itoa(i))
		list.Items = append(list.Items, u)
	}
	if next := from + int(o.Limit); next < p.n {
		list.SetContinue(strconv.Itoa(next))
	}
	return nil
}

func TestListPages(t *testing.T) {
	for name, tc := range map[string]struct {
		pages pages
		want  []string
		asked []string
		fails bool
	}{
		"nothing":             {pages{}, nil, []string{""}, false},
		"one page":            {pages{n: 2}, []string{"0", "1"}, []string{""}, false},
		"several pages":       {pages{n: 5}, []string{"0", "1", "2", "3", "4"}, []string{"", "2", "4"}, false},
		"one that fails":      {pages{n: 5, fail: 1}, nil, []string{"", "2"}, true},
		"as many as two hold": {pages{n: 4}, []string{"0", "1", "2", "3"}, []string{"", "2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ListPages(t.Context(), &tc.pages, schema.GroupVersionKind{Version: "v1", Kind: "ThingList"}, &client.ListOptions{Limit: 2})
			var names []string
			for _, u := range got {
				names = append(names, u.GetName())
			}
			if (err != nil) != tc.fails || !slices.Equal(names, tc.want) || !slices.Equal(tc.pages.asked, tc.asked) {
				t.Errorf("listed %q from pages %q with error %v, want %q from %q", names, tc.pages.asked, err, tc.want, tc.asked)
			}
		})
	}
}
