package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

func TestAuditTakesTheConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := `apiVersion: config.freshbind.dev/v1alpha1
kind: FreshbindConfiguration
defaults: {enforcement: enforce, rolloutStrategy: RollingUpdate}
floors:
- namespaceSelector: {matchLabels: {env: prod}}
  minimumEnforcement: enforce
  minimumStrategy: Recreate
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := auditOptions(file)
	if err != nil {
		t.Fatal(err)
	}
	type options struct {
		Mode, Strategy, Floor    string
		Enforce, Selects, Others bool
	}
	if len(o.Floors) != 1 {
		t.Fatalf("floors are %v", o.Floors)
	}
	f := o.Floors[0]
	got := options{o.Mode, o.Strategy, f.Strategy, f.Enforce,
		f.Namespaces.Matches(labels.Set{"env": "prod"}), f.Namespaces.Matches(labels.Set{"env": "test"})}
	if diff := cmp.Diff(options{"enforce", "RollingUpdate", "Recreate", true, true, false}, got); diff != "" {
		t.Errorf("options (-want,+got):\n%s", diff)
	}
	if o, err := auditOptions(""); err != nil || o.Mode != "" || o.Strategy != "" || len(o.Floors) > 0 {
		t.Errorf("without a file: %v, %v", o, err)
	}
	if _, err := auditOptions(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--config") {
		t.Errorf("a file that is not there: %v", err)
	}
}
