package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const releaseManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: agent-sandbox-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sandboxtemplates.extensions.agents.x-k8s.io}
spec:
  group: extensions.agents.x-k8s.io
  names: {kind: SandboxTemplate}
  versions:
  - name: v1alpha1
    served: false
    schema: {openAPIV3Schema: {properties: {spec: {}}}}
  - name: v1beta1
    served: true
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              networkPolicyManagement: {default: Managed}
              podTemplate: {properties: {spec: {properties: {containers: {items: {properties: {
                name: {}, image: {}, ports: {items: {properties: {containerPort: {}, protocol: {default: TCP}}}}}}}}}}}
`

func TestHashWithCRDsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	withPort := strings.Replace(hashTemplate, `image: "a:v1"`, `image: "a:v1", ports: [{containerPort: 80}]`, 1)
	whole := file("whole", strings.Replace(withPort, "containerPort: 80", "containerPort: 80, protocol: TCP", 1))
	template, crds := file("template", withPort), file("crds", releaseManifest)
	none, broken := file("none", "apiVersion: v1\nkind: Namespace\n"), file("broken", "a: 1\na: 2\n")
	shaped := file("shaped", strings.Replace(releaseManifest, "names: {kind: SandboxTemplate}", "names: []", 1))
	tests := map[string]struct {
		args    []string
		wantErr string
		code    int
	}{
		"a default":          {args: []string{"-f", template, "--crds", crds}},
		"a misspelt field":   {args: []string{"-f", file("misspelt", strings.Replace(withPort, "image:", "imagee:", 1)), "--crds", crds}, wantErr: "spec.podTemplate.spec.containers[0].imagee: unknown field", code: 1},
		"another version":    {args: []string{"-f", file("old", strings.Replace(withPort, "v1beta1", "v1alpha1", 1)), "--crds", crds}, wantErr: "kind: no CRD that was given serves SandboxTemplate of extensions.agents.x-k8s.io/v1alpha1", code: 1},
		"a file without one": {args: []string{"-f", template, "--crds", crds, "--crds", none}, wantErr: "--crds: " + none + ": no CustomResourceDefinition with a schema: name a manifest of the platform's release", code: 1},
		"no YAML":            {args: []string{"-f", template, "--crds", broken}, wantErr: "--crds: " + broken + ": document 1: is not YAML", code: 1},
		"no CRD's shape":     {args: []string{"-f", template, "--crds", shaped}, wantErr: "--crds: " + shaped + ": document 2: decode: ", code: 1},
		"no such file":       {args: []string{"-f", template, "--crds", filepath.Join(dir, "no")}, wantErr: "--crds: read " + filepath.Join(dir, "no"), code: 1},
		"from both":          {args: []string{"-f", template, "--crds", crds, "--stored"}, wantErr: "use one of them", code: 2},
		"standard input":     {args: []string{"-f", template, "--crds", "-"}, wantErr: "--crds: must be the name of a file", code: 2},
	}
	var want, ignored bytes.Buffer
	if code := Main([]string{"hash", "-o", "name", "-f", whole}, nil, &want, &ignored); code != 0 {
		t.Fatal(ignored.String())
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := Main(append([]string{"hash", "-o", "name"}, tc.args...), nil, &out, &errOut)
			if code != tc.code || !strings.Contains(errOut.String(), tc.wantErr) {
				t.Errorf("exit code %d, error %q; want %d, %q", code, errOut.String(), tc.code, tc.wantErr)
			}
			if tc.code != 0 {
				return
			}
			if diff := cmp.Diff(want.String(), out.String()); diff != "" {
				t.Errorf("hash (-want,+got):\n%s", diff)
			}
		})
	}
}
