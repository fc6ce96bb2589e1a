package platform

import (
	"context"
	"runtime"
	"testing"
)

func TestANamespaceThatCannotBeRead(t *testing.T) {
	for name, n := range map[string]Namespace{
		"nobody reads it": {},
		"the read ends": StartNamespace(t.Context(), "ns", func(context.Context, string) (map[string]string, error) {
			runtime.Goexit()
			return nil, nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			if labels, err := n.Labels(); err == nil {
				t.Errorf("Labels() = %v, want an error", labels)
			}
		})
	}
}
