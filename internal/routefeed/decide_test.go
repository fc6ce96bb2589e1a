package routefeed

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

// one is an API server with one object, or an error.
type one struct {
	object *unstructured.Unstructured
	err    error
}

func (o one) Get(context.Context, liveread.Ref) (*unstructured.Unstructured, error) {
	return o.object, o.err
}

// A live read finds a Pod only while the watch follows it, which otherwise would never say that the Pod is gone.
func TestReadPod(t *testing.T) {
	errDown := errors.New("down")
	followed := builders.PodFrom(pod(sandbox(ns, "one"), "10.0.0.1")).RV(7)
	for name, tc := range map[string]struct {
		stored one
		want   bool
		err    error
	}{
		"followed":          {one{object: followed.Obj()}, true, nil},
		"without its label": {one{object: followed.NoLabel(agentsandbox.PodSandboxLabel).Obj()}, false, nil},
		"nobody can tell":   {one{err: errDown}, false, errDown},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{feed: &Feed{platform: platform(), live: liveread.NewReader(tc.stored, nil)}}
			_, got, err := r.ReadPod(t.Context(), ns, "one")
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("found %t, error %v, want %t, %v", got, err, tc.want, tc.err)
			}
		})
	}
}
