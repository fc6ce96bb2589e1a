package controlplane

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// toolModule makes a Go module with one program, and an empty tool cache.
func toolModule(t *testing.T, source string) string {
	t.Helper()
	// Only our own cache is to be empty, not the compiler's.
	gocache, err := goCommand(t.Context(), t.TempDir(), "env", "GOCACHE")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", gocache)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())

	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":        "module example.test/tools\n\ngo 1.26\n",
		"go.sum":        "",
		"hello/main.go": source,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const hello = `package main

var greeting = "unset"

func main() { println(greeting) }
`

func TestBuildToolOnce(t *testing.T) {
	dir := toolModule(t, hello)
	build := func(greeting string) (path, log string) {
		t.Helper()
		var out bytes.Buffer
		path, err := BuildTool(t.Context(), &out, dir, "example.test/tools/hello", "-X=main.greeting="+greeting)
		if err != nil {
			t.Fatal(err)
		}
		return path, out.String()
	}
	first, log := build("moin")
	// How far a slow one is comes on indented lines between.
	lines := slices.DeleteFunc(slices.Collect(strings.Lines(log)), func(line string) bool { return strings.HasPrefix(line, "  ") })
	if len(lines) != 2 || !strings.Contains(log, "only once") {
		t.Errorf("first build wrote %d lines, want one at its start and one at its end:\n%s", len(lines), log)
	}
	if out, err := exec.Command(first).CombinedOutput(); err != nil || string(out) != "moin\n" {
		t.Errorf("program printed %q, %v; want its ldflag", out, err)
	}
	second, log := build("moin")
	if second != first || log != "" {
		t.Errorf("second call gave %s and wrote %q; want %s and nothing", second, log, first)
	}
	third, log := build("salut")
	if third == first || !strings.Contains(log, "last time") {
		t.Errorf("with other ldflags: %s, %q; want another program and the time of the last build", third, log)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte("\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if fourth, log := build("moin"); fourth == first || log == "" {
		t.Errorf("with other pins: %s, %q; want another build", fourth, log)
	}
}

func TestBuildToolConcurrently(t *testing.T) {
	dir := toolModule(t, hello)
	const callers = 4
	logs := make([]bytes.Buffer, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if _, err := BuildTool(t.Context(), &logs[i], dir, "example.test/tools/hello"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	built := 0
	for i := range logs {
		built += strings.Count(logs[i].String(), "built ")
	}
	if built != 1 {
		t.Errorf("%d of %d callers built the tool, want 1", built, callers)
	}
}

func TestBuildToolFailure(t *testing.T) {
	dir := toolModule(t, "package main\n\nfunc main() { undefined() }\n")
	path, err := BuildTool(t.Context(), nil, dir, "example.test/tools/hello")
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Fatalf("got %s and error %v, want the compiler's words", path, err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "freshbind", "tools", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestToolsFromAssets(t *testing.T) {
	assets := t.TempDir()
	t.Setenv(assetsVariable, assets)
	mine := filepath.Join(assets, Etcd)
	if err := os.WriteFile(mine, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	got, err := Tools(t.Context(), &log, Etcd)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{Etcd: mine}, got); diff != "" || log.Len() > 0 {
		t.Errorf("tools (-want,+got):\n%s\nlog %q", diff, &log)
	}
	if path, ok := fromAssets(Kubectl, tools[Kubectl]); ok {
		t.Errorf("took %s, which does not exist", path)
	}
}

func TestToolsRealCache(t *testing.T) {
	if _, err := Tools(t.Context(), os.Stderr, Etcd, KubeAPIServer); err != nil {
		t.Fatal(err)
	}
	// A second call must not even need the go command.
	t.Setenv("PATH", "")
	var log bytes.Buffer
	if _, err := Tools(t.Context(), &log, Etcd, KubeAPIServer); err != nil || log.Len() > 0 {
		t.Errorf("second call: %v, wrote %q", err, &log)
	}
}

func TestToolsUnknown(t *testing.T) {
	_, err := Tools(t.Context(), nil, "kubelet")
	want := `unknown tool "kubelet": use one of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestWaitLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil || first == nil {
		t.Fatalf("lock: %v, %v", first, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waited := 0
	// Being busy is told once; ending the wait then ends it with an error.
	if _, err := waitLock(ctx, path, func() { waited++; cancel() }); err == nil || waited != 1 {
		t.Errorf("waiting for a held lock: error %v after %d calls, want an error after 1", err, waited)
	}
	if err := first.unlock(); err != nil {
		t.Fatal(err)
	}
	second, err := waitLock(t.Context(), path, func() { t.Error("waited for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	if err := second.unlock(); err != nil {
		t.Error(err)
	}
}
