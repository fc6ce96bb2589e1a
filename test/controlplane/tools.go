package controlplane

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the tools.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	KubeScheduler         = "kube-scheduler"
	Kubectl               = "kubectl"
	Kwok                  = "kwok"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	// assetsVariable is envtest's: a folder with etcd, kube-apiserver and
	// kubectl that somebody has already.
	assetsVariable = "KUBEBUILDER_ASSETS"
)

// tool is a program of the tools module.
type tool struct {
	pkg string
	// kubernetes tools need their version linked in: kubectl cannot parse the
	// placeholder that the source has.
	kubernetes bool
	// asset: envtest's folder may have it.
	asset bool
}

var tools = map[string]tool{
	Etcd:                  {pkg: "go.etcd.io/etcd/server/v3", asset: true},
	KubeAPIServer:         {pkg: kubernetesModule + "/cmd/kube-apiserver", kubernetes: true, asset: true},
	KubeControllerManager: {pkg: kubernetesModule + "/cmd/kube-controller-manager", kubernetes: true},
	KubeScheduler:         {pkg: kubernetesModule + "/cmd/kube-scheduler", kubernetes: true},
	Kubectl:               {pkg: kubernetesModule + "/cmd/kubectl", kubernetes: true, asset: true},
	Kwok:                  {pkg: "sigs.k8s.io/kwok/cmd/kwok"},
}

// ToolNames lists what [Tools] can build.
func ToolNames() []string { return slices.Sorted(maps.Keys(tools)) }

// Tools returns the paths of the named tools and builds those that are missing,
// as [BuildTool] does, from the versions pinned in tools/go.mod, or the Kubernetes
// that KubernetesVariable asks for. etcd, kube-apiserver and kubectl are taken from the folder KUBEBUILDER_ASSETS
// instead when it is set and has them.
func Tools(ctx context.Context, log io.Writer, names ...string) (map[string]string, error) {
	paths := make(map[string]string, len(names))
	for _, name := range names {
		known, ok := tools[name]
		if !ok {
			return nil, fmt.Errorf("unknown tool %q: use one of %s", name, strings.Join(ToolNames(), ", "))
		}
		if asset, ok := fromAssets(name, known); ok {
			paths[name] = asset
			continue
		}
		program, err := buildKnown(ctx, log, name, known)
		if err != nil {
			return nil, err
		}
		paths[name] = program
	}
	return paths, nil
}

func fromAssets(name string, known tool) (string, bool) {
	dir := os.Getenv(assetsVariable)
	// Whoever asks for a version means all of Kubernetes.
	if dir == "" || !known.asset || known.kubernetes && os.Getenv(KubernetesVariable) != "" {
		return "", false
	}
	path := filepath.Join(dir, name)
	return path, exists(path)
}

func buildKnown(ctx context.Context, log io.Writer, name string, known tool) (string, error) {
	moduleDir, err := toolsDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	t := target{name: name, title: name, moduleDir: moduleDir, pkg: known.pkg}
	if known.kubernetes {
		version, err := otherKubernetes(ctx)
		if err == nil && version != "" {
			t.title += " " + version
			t.moduleDir, err = kubernetesDir(ctx, log, version)
		}
		if err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
		t.moreLdflags = func(ctx context.Context) ([]string, error) { return kubernetesVersionFlags(ctx, t.moduleDir) }
	}
	return build(ctx, log, t)
}

// toolsDir is the module that pins the tools.
func toolsDir() (string, error) {
	root, err := RepositoryDir()
	return filepath.Join(root, "test", "controlplane", "tools"), err
}

// kubernetesVersionFlags links the pinned version in, as Kubernetes' own
// hack/lib/version.sh does.
func kubernetesVersionFlags(ctx context.Context, moduleDir string) ([]string, error) {
	version, err := ModuleVersion(ctx, moduleDir, kubernetesModule)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("version %q of %s is not vMAJOR.MINOR.PATCH", version, kubernetesModule)
	}
	const at = "-X=k8s.io/component-base/version."
	return []string{at + "gitVersion=" + version, at + "gitMajor=" + parts[0], at + "gitMinor=" + parts[1]}, nil
}
