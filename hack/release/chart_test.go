package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kubectl apply knows no hooks: it would run the Job that takes Freshbind away.
func TestPlainManifestsInstallAndDoNotUninstall(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	helm, err := output(t.Context(), root, "go", "run", "./hack/tools", "helm")
	if err != nil {
		t.Fatal(err)
	}
	m := newMaker(t, func(o *options) { o.helm = helm })
	m.root = root
	if err := m.chart(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	manifest := string(result(t, m, "freshbind-v1.2.3.yaml"))
	for line := range strings.Lines(manifest) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	for _, kind := range []string{"Namespace", "Deployment", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "Certificate"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no %s among %v", kind, kinds)
		}
	}
	for _, kind := range []string{"Job", "Pod"} {
		if slices.Contains(kinds, kind) {
			t.Errorf("a %s runs as soon as the manifest is applied", kind)
		}
	}
	if strings.Contains(manifest, "helm.sh/hook") {
		t.Error("an object says that it is a hook, to nobody")
	}
}
