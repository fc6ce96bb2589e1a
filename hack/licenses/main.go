// Licenses prints under which licenses the modules are that the shipped programs are
// built from, on every platform that they are shipped for. It fails when a module has no
// license, or a file with text that is not one of those that may be shipped.
//
//	cd hack/licenses && go run .
//
// The Go distribution's own packages, under BSD-3-Clause, are in no module.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const (
	// repository is where the sources are, for who runs this in its folder.
	repository = "../.."
	// programs are what is shipped.
	programs = "./cmd/..."
	// platforms are those of a release: a package may be built for one of them only.
	platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	modules, err := shipped(ctx)
	if err != nil {
		return err
	}
	return report(out, modules)
}

// report prints the licenses of modules; the error names each that may not be shipped.
func report(out io.Writer, modules []module) error {
	var errs []error
	for _, m := range modules {
		licenses, err := m.licenses()
		if err != nil {
			errs = append(errs, fmt.Errorf("module %s %s: %w", m.path, m.version, err))
			continue
		}
		if _, err := fmt.Fprintf(out, "%-60s %s\n", m.path+" "+m.version, strings.Join(licenses, " AND ")); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	_, err := fmt.Fprintf(out, "licenses: %d modules, none that may not be shipped\n", len(modules))
	return err
}

// module is one that others wrote.
type module struct {
	path, version, dir string
	// packages are the folders of it that are shipped.
	packages []string
}

// shipped are the modules that the programs are built from, on all platforms.
func shipped(ctx context.Context) ([]module, error) {
	byPath := map[string]*module{}
	for _, platform := range strings.Split(platforms, ",") {
		listed, err := list(ctx, platform)
		if err != nil {
			return nil, fmt.Errorf("list what %s consists of on %s: %w", programs, platform, err)
		}
		if err := collect(listed, byPath); err != nil {
			return nil, err
		}
	}
	var modules []module
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		modules = append(modules, *byPath[path])
	}
	return modules, nil
}

func list(ctx context.Context, platform string) ([]byte, error) {
	goos, arch, _ := strings.Cut(platform, "/")
	cmd := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-deps", "-json=Dir,Module", programs)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	listed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return listed, nil
}

// collect adds what go list printed of packages to their modules.
func collect(listed []byte, byPath map[string]*module) error {
	for d := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read packages: %w", err)
		}
		// Packages of the Go distribution are in no module.
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := byPath[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir}
			byPath[m.path] = m
		}
		if !slices.Contains(m.packages, p.Dir) {
			m.packages = append(m.packages, p.Dir)
		}
	}
}
