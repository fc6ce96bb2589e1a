// Package platformtest does in tests of platforms what webhooks do by a platform's word.
package platformtest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Stamper says what a Sandbox, about to be created, has to be rewritten to.
type Stamper interface {
	NewSandbox(context.Context, *unstructured.Unstructured) (platform.Stamp, error)
}

// Rewrite does what the stamping webhook does to a Sandbox.
func Rewrite(t testing.TB, p Stamper, sandbox *unstructured.Unstructured) (*unstructured.Unstructured, platform.Stamp) {
	t.Helper()
	stamp, err := p.NewSandbox(t.Context(), sandbox)
	if err != nil {
		t.Fatal(err)
	}
	var fields []platform.Field
	if stamp.Repaired != "" {
		fields = append(fields, platform.Field{Path: []string{"metadata", "annotations", settings.RepairedKey}, Value: stamp.Repaired})
	}
	if stamp.Repair != nil {
		fields = append(fields, stamp.Repair.Fields...)
	}
	out := sandbox.DeepCopy()
	for _, f := range fields {
		if f.Value == nil {
			unstructured.RemoveNestedField(out.Object, f.Path...)
		} else if err := unstructured.SetNestedField(out.Object, f.Value, f.Path...); err != nil {
			t.Fatal(err)
		}
	}
	return out, stamp
}
