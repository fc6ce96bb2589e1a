package fakeupstream

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

// Identity is upstream's own user, with every right: a stand-in has no roles of
// its own release.
func Identity(c *controlplane.Cluster) (*rest.Config, error) {
	return c.User(upstream.User, "system:masters", "system:authenticated")
}

// RunSandboxes runs the Sandbox controller of the nearest release, without its
// controllers of pools and claims. It ends with the cluster.
func RunSandboxes(ctx context.Context, c *controlplane.Cluster, style Style, log io.Writer) error {
	program, err := upstream.Build(ctx, log, style.Nearest())
	if err != nil {
		return fmt.Errorf("run sandbox controller: %w", err)
	}
	identity, err := Identity(c)
	if err != nil {
		return fmt.Errorf("run sandbox controller: %w", err)
	}
	name := "sandbox-controller-" + style.Nearest()
	kubeconfig := filepath.Join(c.Dir(), "kubeconfig-"+name)
	if err := c.WriteKubeconfig(identity, kubeconfig); err != nil {
		return fmt.Errorf("run sandbox controller: %w", err)
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"}
	if style == LockFree {
		args = append(args, "--enable-webhook=false")
	}
	if _, err := c.Run(name, program, args...); err != nil {
		return fmt.Errorf("run sandbox controller: %w", err)
	}
	return nil
}
