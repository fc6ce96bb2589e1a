package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// modulePath is this repository's module; the tool modules are found below it.
const modulePath = "github.com/freshbind/freshbind"

// BuildTool builds the main package pkg of the Go module in moduleDir with
// ldflags, unless that very build (same go.mod, go.sum, Go version, platform
// and ldflags) is in the cache already, and returns the program's path.
//
// One line goes to log when a build starts and one when it ends, and while it lasts
// a line tells how far it is; a second call writes nothing. Several processes may
// ask for the same tool at once: one builds, the others wait.
func BuildTool(ctx context.Context, log io.Writer, moduleDir, pkg string, ldflags ...string) (string, error) {
	name := path.Base(pkg)
	return build(ctx, log, target{
		name: name, title: filepath.Base(moduleDir) + "/" + name,
		moduleDir: moduleDir, pkg: pkg, ldflags: ldflags,
	})
}

// target is one program to build.
type target struct {
	// title is what people see, name the program's file.
	name, title, moduleDir, pkg string
	ldflags                     []string
	// moreLdflags follow from the module's pins, so the cache key covers them
	// already and they are asked for only when something is built.
	moreLdflags func(context.Context) ([]string, error)
}

// build returns the path of t's program, building it first if need be.
func build(ctx context.Context, log io.Writer, t target) (string, error) {
	program, err := t.program()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", t.title, err)
	}
	if exists(program) {
		return program, nil
	}
	// One lock for what a module builds: two at once would compile the same packages.
	// Modules have little in common, and one downloads or links while another compiles.
	lock, err := waitLock(ctx, filepath.Dir(program)+".lock", func() {
		say(log, "waiting for another build to end before building %s", t.title)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", t.title, err)
	}
	defer func() { _ = lock.unlock() }()
	if exists(program) {
		return program, nil
	}
	if err := compile(ctx, log, t, program); err != nil {
		return "", fmt.Errorf("build %s: %w", t.title, err)
	}
	return program, nil
}

// program is where t's program belongs in the cache.
func (t target) program() (string, error) {
	key, err := cacheKey(t.moduleDir, t.ldflags)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir("tools", key)
	return filepath.Join(dir, t.name), err
}

// compile builds t into program, which appears only when it is complete.
func compile(ctx context.Context, log io.Writer, t target, program string) error {
	ldflags := append([]string{"-s", "-w"}, t.ldflags...)
	if t.moreLdflags != nil {
		more, err := t.moreLdflags(ctx)
		if err != nil {
			return err
		}
		ldflags = append(ldflags, more...)
	}
	history := filepath.Join(filepath.Dir(filepath.Dir(program)), "durations.json")
	took := readDurations(history)
	expected := "this can take minutes, but only once"
	if last, ok := took[t.title]; ok {
		expected = fmt.Sprintf("it took %.0f s last time", last)
	}
	say(log, "building %s: %s has none yet for the versions in %s; %s",
		t.title, filepath.Dir(program), filepath.Join(t.moduleDir, "go.mod"), expected)

	start := time.Now()
	partial := fmt.Sprintf("%s.%d.partial", program, os.Getpid())
	defer func() { _ = os.Remove(partial) }()
	// The flags are those of a plain go build, so that a package which Freshbind or
	// another tool needs, too, is compiled once; -v names each that is.
	live := newProgress(ctx, log, t, time.Duration(took[t.title]*float64(time.Second)))
	defer live.stop()
	if _, err := goCommandTo(ctx, live, t.moduleDir, "build", "-v", "-buildvcs=false", "-mod=readonly",
		"-ldflags", strings.Join(ldflags, " "), "-o", partial, t.pkg); err != nil {
		return err
	}
	if err := os.Rename(partial, program); err != nil {
		return fmt.Errorf("put into the cache: %w", err)
	}
	seconds := time.Since(start).Seconds()
	say(log, "built %s in %.0f s, kept for later", t.title, seconds)
	return rememberDuration(ctx, history, t.title, seconds)
}

// cacheKey names all that decides what a build of a tool module yields.
func cacheKey(moduleDir string, ldflags []string) (string, error) {
	var covered strings.Builder
	// A module may have a program of its own beside the pins.
	sources, err := filepath.Glob(filepath.Join(moduleDir, "*.go"))
	if err != nil {
		return "", fmt.Errorf("read tool module: %w", err)
	}
	for _, path := range append([]string{filepath.Join(moduleDir, "go.mod"), filepath.Join(moduleDir, "go.sum")}, sources...) {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read tool module: %w", err)
		}
		fmt.Fprintf(&covered, "%s %q\n", filepath.Base(path), content)
	}
	fmt.Fprintf(&covered, "%s %s/%s %q\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, ldflags)
	sum := sha256.Sum256([]byte(covered.String()))
	return hex.EncodeToString(sum[:8]), nil
}

// goCommand runs the go command in dir and returns its stdout.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	return goCommandTo(ctx, nil, dir, args...)
}

// goCommandTo shows live what the command does, if that is not nil.
func goCommandTo(ctx context.Context, live *progress, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// Neither a workspace nor the caller's flags (-race, -mod=vendor) may
	// change what is built.
	cmd.Env = append(environWithout("GOFLAGS", "GOWORK", "GOOS", "GOARCH"), "GOFLAGS=", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if live != nil {
		cmd.Stderr = live.reading(&stderr)
	}
	if err := startTied(cmd); err != nil {
		return "", fmt.Errorf("run go %s: %w", args[0], err)
	}
	if err := cmd.Wait(); err != nil {
		err = errors.Join(err, context.Cause(ctx))
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Go runs the go command in dir as builds of tools do, and returns its stdout. It
// ends with this process.
func Go(ctx context.Context, dir string, args ...string) (string, error) {
	return goCommand(ctx, dir, args...)
}

// BuildCheckout builds the main package pkg of this checkout with flags of go build that
// name no file, and puts it where program says. What was linked is kept in bin/tests, for
// each set of flags: linking takes longer than compiling what changed, and the tests of
// another package need the same program. What is there stays as it is when somebody edits
// the sources and builds again.
func BuildCheckout(ctx context.Context, pkg, program string, flags ...string) error {
	root, err := RepositoryDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "bin", "tests", strings.Join(append([]string{path.Base(pkg)}, flags...), ""))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for what is linked: %w", err)
	}
	lock, err := waitLock(ctx, filepath.Join(dir, "lock"), func() {})
	if err != nil {
		return err
	}
	defer func() { _ = lock.unlock() }()
	kept := filepath.Join(dir, path.Base(pkg))
	if _, err := goCommand(ctx, root, append(append([]string{"build", "-o", kept}, flags...), pkg)...); err != nil {
		return err
	}
	if err := os.Remove(program); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replace what was built: %w", err)
	}
	// The go command replaces what it has built before, and writes into no such file: a
	// second name keeps it. Another file system needs a copy, by another process: no
	// program can be started while one that was forked from this one has it open.
	if os.Link(kept, program) == nil {
		return nil
	}
	if output, err := exec.CommandContext(ctx, "cp", kept, program).CombinedOutput(); err != nil {
		return fmt.Errorf("copy what was built: %w: %s", err, output)
	}
	return nil
}

// ModuleVersion returns the version of a dependency as pinned by the Go module
// in moduleDir.
func ModuleVersion(ctx context.Context, moduleDir, dependency string) (string, error) {
	return goCommand(ctx, moduleDir, "list", "-mod=readonly", "-m", "-f", "{{.Version}}", dependency)
}

// ModuleSource returns the folder with the source of a dependency of the Go
// module in moduleDir, downloading it if need be.
func ModuleSource(ctx context.Context, moduleDir, dependency string) (string, error) {
	output, err := goCommand(ctx, moduleDir, "mod", "download", "-json", dependency)
	if err != nil {
		return "", err
	}
	var download struct{ Dir, Error string }
	if err := json.Unmarshal([]byte(output), &download); err != nil {
		return "", fmt.Errorf("read download of %s: %w", dependency, err)
	}
	if download.Dir == "" {
		return "", fmt.Errorf("download %s: %s", dependency, download.Error)
	}
	return download.Dir, nil
}

// RepositoryDir is the root of the checkout that the working directory is in.
// Tool modules cannot be embedded into a program, so they are read from there.
func RepositoryDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && declares(string(content), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s: run this from there", start, modulePath)
		}
	}
}

func declares(goMod, module string) bool {
	for line := range strings.Lines(goMod) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return fields[1] == module
		}
	}
	return false
}

func readDurations(file string) map[string]float64 {
	took := map[string]float64{}
	content, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(content, &took) != nil {
		// Only a remark about the past hangs on it.
		return map[string]float64{}
	}
	return took
}

// rememberDuration adds to what other builds may be adding to as well.
func rememberDuration(ctx context.Context, file, title string, seconds float64) error {
	lock, err := waitLock(ctx, file+".lock", func() {})
	if err != nil {
		return fmt.Errorf("remember build durations: %w", err)
	}
	defer func() { _ = lock.unlock() }()
	took := readDurations(file)
	took[title] = seconds
	content, err := json.MarshalIndent(took, "", "  ")
	if err != nil {
		return fmt.Errorf("encode build durations: %w", err)
	}
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("remember build durations: %w", err)
	}
	return nil
}

func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// say writes one progress line. Progress that cannot be written is no reason to fail.
func say(log io.Writer, format string, args ...any) {
	if log == nil {
		return
	}
	// Another build may show there how far it is.
	if isTerminal(log) {
		format = clearLine + format
	}
	_, _ = fmt.Fprintf(log, format+"\n", args...)
}
