package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

// builtTimeout is long for fake nodes, also on a machine that has more to do.
const builtTimeout = 5 * time.Minute

// guardWithin bounds the time until the API server asks Freshbind.
const guardWithin = 5 * time.Minute

// stage is what the demo plays on: a cluster with agent-sandbox and Freshbind,
// the two namespaces of the first act and that of the second.
type stage struct {
	admin                       *rest.Config
	guard                       *fixture.Freshbind
	unguarded, guarded, rolling *scenario.Namespace
	// timeout bounds every wait for pools and claims.
	timeout time.Duration
	// dir has certificates and logs; keepDir leaves it there.
	dir     string
	keepDir bool
	// kubectl is how to look at it.
	kubectl string
	// failed tells of a program that ended unasked.
	failed func() error
	// undo, in reverse order, removes what was made.
	undo []func(context.Context) error
}

func (s *stage) later(undo func(context.Context) error) { s.undo = append(s.undo, undo) }

// close removes everything, also after ctx has ended.
func (s *stage) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i](ctx))
	}
	return errors.Join(errs...)
}

func (s *stage) makeDir() error {
	dir, err := os.MkdirTemp("", "freshbind-demo-")
	if err != nil {
		return fmt.Errorf("make the demo's folder: %w", err)
	}
	s.dir = dir
	s.later(func(context.Context) error {
		if s.keepDir {
			return nil
		}
		return os.RemoveAll(dir)
	})
	return nil
}

// setStage returns a stage also with an error, for what there is to undo.
func setStage(ctx context.Context, o options, out io.Writer) (*stage, error) {
	if o.context != "" {
		return existingStage(ctx, o, out)
	}
	return builtStage(ctx, o, out)
}

// builtStage starts a control plane of the demo's own.
func builtStage(ctx context.Context, o options, out io.Writer) (*stage, error) {
	s := &stage{timeout: builtTimeout}
	if err := s.makeDir(); err != nil {
		return s, err
	}
	start := time.Now()
	world, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: o.upstream,
		Delay:   o.delays(),
		Cluster: controlplane.Options{Dir: s.dir, Log: os.Stderr},
	})
	if err != nil {
		return s, err
	}
	s.later(func(context.Context) error { return world.Stop() })
	s.admin, s.guard, s.failed = world.Cluster.Config(), world.Guard, world.Err
	s.kubectl = "kubectl --kubeconfig " + world.Cluster.KubeconfigPath()
	if err := s.createNamespaces(ctx, world.Version, ""); err != nil {
		return s, err
	}
	versions, err := world.Cluster.Versions(ctx)
	if err != nil {
		return s, err
	}
	sees := "it sees templates as soon as they change"
	if o.lag > 0 {
		sees = fmt.Sprintf("it sees %s %.1f s late", o.seenLate(), o.lag.Seconds())
	}
	_, _ = fmt.Fprintf(out, "control plane  etcd %s, kube-apiserver %s, kwok %s at %s; all up in %.0f s\n",
		versions.Etcd, versions.Kubernetes, versions.Kwok, s.admin.Host, time.Since(start).Seconds())
	_, _ = fmt.Fprintf(out, "upstream       agent-sandbox %s, unmodified, built from its own Go module; %s\n", o.upstream, sees)
	_, _ = fmt.Fprintln(out, s.modes())
	return s, nil
}

// modes says what Freshbind does where.
func (s *stage) modes() string {
	return fmt.Sprintf("freshbind      enforces in namespaces %s and %s (freshbind.dev/enforcement=enforce) and looks on in %s (no label)",
		s.guarded.Name, s.rolling.Name, s.unguarded.Name)
}

// createNamespaces makes all three and waits until the one is guarded. Only
// unguarded has no label: there Freshbind judges and lets everything pass. What
// it made is on the stage also with an error.
func (s *stage) createNamespaces(ctx context.Context, version, prefix string) error {
	for _, side := range []struct {
		into   **scenario.Namespace
		name   string
		labels map[string]string
	}{
		{&s.unguarded, "unguarded", nil}, {&s.guarded, "guarded", scenario.Enforce()},
		{&s.rolling, "rolling", scenario.Enforce()},
	} {
		n, err := scenario.CreateNamespace(ctx, s.admin, version, prefix+side.name, side.labels)
		if err != nil {
			return err
		}
		*side.into = n
	}
	return s.guarded.WaitGuarded(ctx, guardWithin)
}
