package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/freshbind/freshbind/test/controlplane"
)

// Where the chart is installed, and as what.
const (
	namespace = "freshbind-system"
	release   = "freshbind"
)

// helmTimeout is as long as every other wait: nothing here should come near it.
var helmTimeout = "--timeout=" + within.String()

const helmProgram = "helm.sh/helm/v4/cmd/helm"

// helm is the real Helm, with the chart of this checkout.
type helm struct {
	program, chart string
	// kubeconfig is the cluster's; empty for what needs none.
	kubeconfig string
}

// BuildHelm returns the path of Helm, built as controlplane.BuildTool does.
func BuildHelm(ctx context.Context, log io.Writer) (string, error) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return "", err
	}
	return controlplane.BuildTool(ctx, log, filepath.Join(root, "test", "chart", "tools"), helmProgram)
}

// buildHelm builds Helm, once for all tests.
var buildHelm = sync.OnceValues(func() (helm, error) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return helm{}, err
	}
	program, err := BuildHelm(context.Background(), os.Stderr)
	return helm{program: program, chart: filepath.Join(root, "charts", "freshbind")}, err
})

// with returns Helm for a cluster.
func (h helm) with(kubeconfig string) helm {
	h.kubeconfig = kubeconfig
	return h
}

// run returns what Helm prints; an error has what it complains of.
func (h helm) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig, "HELM_NAMESPACE="+namespace)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w", args[0], errors.Join(err, errors.New(errOut.String()), ctx.Err()))
	}
	return out.String(), nil
}

// set makes --set flags.
func set(values ...string) []string {
	var flags []string
	for _, v := range values {
		flags = append(flags, "--set", v)
	}
	return flags
}
