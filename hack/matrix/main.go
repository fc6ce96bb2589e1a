// Matrix runs the core of all tests on each Kubernetes that Freshbind claims, and
// the guard's with each release of agent-sandbox, and prints what came of it.
//
// Environment:
//
//	MATRIX=v1.30.14,agent-sandbox@v0.5.3  what to run; everything by default
//	MATRIX_RESULTS=.results               keep what the tests said there, for make coverage
//	FRESHBIND_UPDATE_DOCS=1               put the results into docs/matrix.md
//
// Versions are run one after the other: programs are built, the API server is asked
// what it can do, and then `go test` runs the tests that test/suite/tests.txt marks
// with "matrix". It exits with 0 only when all of them passed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/freshbind/freshbind/hack/markdown"
	"github.com/freshbind/freshbind/test/controlplane"
)

// markdown.UpdateDocs is what transcripts in the documentation are written by, too.

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Getenv)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, getenv func(string) string) error {
	o, err := parseOptions(getenv)
	if err != nil {
		return err
	}
	pinned, err := controlplane.PinnedKubernetes(ctx)
	if err != nil {
		return err
	}
	var done results
	for _, version := range o.chosen.kubernetes {
		r, err := o.runKubernetes(ctx, out, version)
		if err != nil {
			return fmt.Errorf("on Kubernetes %s: %w", version, err)
		}
		done.Kubernetes = append(done.Kubernetes, r)
	}
	for _, release := range o.chosen.releases {
		r, err := o.runRelease(ctx, out, release, pinned)
		if err != nil {
			return fmt.Errorf("with agent-sandbox %s: %w", release, err)
		}
		done.Releases = append(done.Releases, r)
	}
	if _, err := fmt.Fprintf(out, "\n%s", done.tables()); err != nil {
		return err
	}
	if o.updateDocs {
		if err := updatePage(done); err != nil {
			return err
		}
	}
	return done.fault()
}

func updatePage(done results) error {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return err
	}
	return markdown.Change(filepath.Join(root, "docs", "matrix.md"), func(page string) (string, error) { return withResults(page, done) })
}

// runKubernetes builds, asks and tests one version.
func (o options) runKubernetes(ctx context.Context, out io.Writer, version string) (kubernetesResult, error) {
	r := kubernetesResult{Version: version}
	// This process builds and asks; the tests inherit it.
	if err := os.Setenv(controlplane.KubernetesVariable, version); err != nil {
		return r, fmt.Errorf("choose Kubernetes: %w", err)
	}
	defer func() { _ = os.Unsetenv(controlplane.KubernetesVariable) }()
	say(out, "Kubernetes %s", version)
	start := time.Now()
	_, err := controlplane.Tools(ctx, os.Stderr, controlplane.KubeAPIServer, controlplane.KubeControllerManager,
		controlplane.KubeScheduler, controlplane.Etcd, controlplane.Kwok)
	if err != nil {
		return r, err
	}
	say(out, "  programs are there after %.0f s", time.Since(start).Seconds())
	if r.features, err = ask(ctx); err != nil {
		return r, err
	}
	say(out, "  the API server has told what it can do after %.0f s; now the tests", time.Since(start).Seconds())
	args, err := suiteArgs(ctx)
	if err != nil {
		return r, err
	}
	r.tests, err = o.goTest(ctx, out, version, version, args)
	return r, err
}

func (o options) runRelease(ctx context.Context, out io.Writer, release, kubernetes string) (releaseResult, error) {
	r := releaseResult{Version: release, Kubernetes: kubernetes}
	say(out, "agent-sandbox %s on Kubernetes %s", release, kubernetes)
	tests, err := o.goTest(ctx, out, "agent-sandbox-"+release, kubernetes, []string{"-run", "^TestFaults$/^" + release + "$", "./test/" + guardPackage})
	r.guard = tests[guardPackage]
	return r, err
}

func say(out io.Writer, format string, args ...any) {
	// Progress that cannot be written is no reason to fail.
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}
