// Purecoverage runs the tests of the packages that decide on values, and fails where a
// package's own tests leave out more of its statements than they may. It prints how much
// of each package they run, and where the statements are that they do not.
//
// The packages are those that the linter depguard keeps pure, by .golangci.yml.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/test/controlplane"
)

// least is how much of a package's statements its tests have to run, in percent.
const least = 95

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pure-coverage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		return fmt.Errorf("read which packages are pure: %w", err)
	}
	packages, err := pure(config)
	if err != nil {
		return err
	}
	profile, err := test(ctx, root, packages, os.Stderr)
	if err != nil {
		return err
	}
	covered, err := read(profile)
	if err != nil {
		return err
	}
	return report(out, packages, covered)
}

// pure are the folders of the packages that the rule is for.
func pure(config []byte) ([]string, error) {
	var c struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("read .golangci.yml: %w", err)
	}
	const rule = "linters.settings.depguard.rules.pure.files"
	var folders []string
	for _, pattern := range c.Linters.Settings.Depguard.Rules["pure"].Files {
		if strings.HasPrefix(pattern, "!") {
			continue
		}
		folder, ok := strings.CutPrefix(pattern, "**/")
		folder, also := strings.CutSuffix(folder, "/*.go")
		if !ok || !also || strings.Contains(folder, "*") {
			return nil, fmt.Errorf("%s: %q: write **/FOLDER/*.go", rule, pattern)
		}
		folders = append(folders, folder)
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s: it names no package", rule)
	}
	slices.Sort(folders)
	return folders, nil
}

// test runs the tests of packages, and returns what go test wrote of which statements ran.
func test(ctx context.Context, root string, packages []string, output io.Writer) (string, error) {
	dir, err := os.MkdirTemp("", "freshbind-coverage-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "profile")
	args := []string{"test", "-timeout=1h", "-covermode=set", "-coverprofile=" + path}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, output, output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run tests: %w", errors.Join(err, ctx.Err()))
	}
	profile, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read which statements ran: %w", err)
	}
	return string(profile), nil
}
