package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKubernetesGoMod(t *testing.T) {
	const published = `{
  "Module": {"Path": "k8s.io/kubernetes"}, "Go": "1.24.0",
  "GoDebug": [{"Key": "default", "Value": "go1.24"}],
  "Require": [
    {"Path": "github.com/spf13/cobra", "Version": "v1.9.1"},
    {"Path": "k8s.io/api", "Version": "v0.0.0"},
    {"Path": "k8s.io/endpointslice", "Version": "v0.0.0"},
    {"Path": "k8s.io/klog/v2", "Version": "v2.130.1"}
  ],
  "Replace": [
    {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
    {"Old": {"Path": "k8s.io/endpointslice"}, "New": {"Path": "./staging/src/k8s.io/endpointslice"}},
    {"Old": {"Path": "k8s.io/sample-apiserver"}, "New": {"Path": "./staging/src/k8s.io/sample-apiserver"}}
  ]
}`
	const want = `module github.com/freshbind/freshbind/test/controlplane/kubernetes

go 1.24.0

godebug default=go1.24

replace (
	k8s.io/api => k8s.io/api v0.34.4
	k8s.io/endpointslice => k8s.io/endpointslice v0.34.3
	k8s.io/sample-apiserver => k8s.io/sample-apiserver v0.34.4
)

require (
	k8s.io/kubernetes v1.34.4
	github.com/spf13/cobra v1.9.1 // indirect
	k8s.io/api v0.34.4 // indirect
	k8s.io/endpointslice v0.34.3 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)
`
	own, err := readGoMod([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"k8s.io/api", "k8s.io/endpointslice"}, own.stagedRequired()); diff != "" {
		t.Errorf("required modules of the folder staging (-want,+got):\n%s", diff)
	}
	got := kubernetesGoMod("v1.34.4", "v0.34.4", own, map[string]string{"k8s.io/api": "v0.34.4", "k8s.io/endpointslice": "v0.34.3"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("go.mod (-want,+got):\n%s", diff)
	}
	// The go command has to take it for a go.mod.
	path := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := goCommand(t.Context(), t.TempDir(), "mod", "edit", "-json", path); err != nil {
		t.Error(err)
	}
}

func TestReadGoModRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ published, want string }{
		"a module of somebody else's": {
			`{"Replace": [{"Old": {"Path": "a.test/b"}, "New": {"Path": "a.test/fork"}}]}`, "replaces a.test/b by a.test/fork",
		},
		"none at all": {`{"Go": "1.24.0"}`, "replaces no module"},
		"no JSON":     {`module k8s.io/kubernetes`, "read go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readGoMod([]byte(tc.published)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestStagingVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.30.14": "v0.30.14", "v1.37.1": "v0.37.1",
		"1.30.14": "", "v1.30": "", "v2.0.1": "", "v1.37.x": "", "v1..1": "", "v1.37.1/..": "", "v1.37.0-rc.0": "",
	} {
		t.Run(version, func(t *testing.T) {
			if got, err := stagingVersion(version); got != want || (err == nil) != (want != "") {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestOtherKubernetes(t *testing.T) {
	pinned, err := PinnedKubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Builds that are there already are not made again under another name.
	for version, want := range map[string]string{"": "", pinned: "", "v1.30.14": "v1.30.14"} {
		t.Setenv(KubernetesVariable, version)
		if got, err := otherKubernetes(t.Context()); got != want || err != nil {
			t.Errorf("with %q: %q, %v; want %q", version, got, err, want)
		}
	}
	t.Setenv(KubernetesVariable, "1.30")
	if _, err := otherKubernetes(t.Context()); err == nil || !strings.Contains(err.Error(), KubernetesVariable) {
		t.Errorf("got error %v, want one that names %s", err, KubernetesVariable)
	}
}

// Whoever has programs of envtest and asks for a version means the version.
func TestAssetsAreNotTakenForAnotherKubernetes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{Etcd, KubeAPIServer} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(assetsVariable, dir)
	for version, want := range map[string]bool{"": true, "v1.30.14": false} {
		t.Setenv(KubernetesVariable, version)
		if _, ok := fromAssets(KubeAPIServer, tools[KubeAPIServer]); ok != want {
			t.Errorf("kube-apiserver with %q: taken %v, want %v", version, ok, want)
		}
		if _, ok := fromAssets(Etcd, tools[Etcd]); !ok {
			t.Errorf("etcd with %q is not taken", version)
		}
	}
}
