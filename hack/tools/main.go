// Tools builds programs that tests and the demo need ahead of time, for
// example to fill a CI cache, and prints their paths.
//
//	go run ./hack/tools etcd kube-apiserver kwok agent-sandbox@v1.0.3
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/freshbind/freshbind/test/chart"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

func run(names []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(names) == 0 {
		return fmt.Errorf("name what to build: %s, helm, cert-manager, or agent-sandbox@VERSION with one of %s",
			strings.Join(controlplane.ToolNames(), ", "), strings.Join(upstream.Releases(), ", "))
	}
	for _, name := range names {
		path, err := build(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

func build(ctx context.Context, name string) (string, error) {
	if version, ok := strings.CutPrefix(name, "agent-sandbox@"); ok {
		return upstream.Build(ctx, os.Stderr, version)
	}
	switch name {
	case "helm":
		return chart.BuildHelm(ctx, os.Stderr)
	case "cert-manager":
		return chart.BuildCertManager(ctx, os.Stderr)
	}
	paths, err := controlplane.Tools(ctx, os.Stderr, name)
	return paths[name], err
}
