package controlplane

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What is linked for one is there for the next, and nobody's program changes when
// somebody edits the sources.
func TestBuildCheckout(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	write := func(path, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	build := func(program string) {
		t.Helper()
		if err := BuildCheckout(t.Context(), "./cmd/hello", program); err != nil {
			t.Fatal(err)
		}
	}
	says := func(program, want string) {
		t.Helper()
		if got, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("%s says %q, %v; want %q", filepath.Base(program), got, err, want)
		}
	}
	const hello = `package main; import "fmt"; func main() { fmt.Print("hello") }`
	const moin = `package main; import "fmt"; func main() { fmt.Print("moin") }`
	write("go.mod", "module "+modulePath+"\n\ngo 1.26\n")
	write("cmd/hello/main.go", hello)
	one, other := filepath.Join(root, "one"), filepath.Join(root, "other")
	write(other, "an older program")

	build(one)
	// It is open until the end, so that no other file gets its number.
	first, err := os.Open(filepath.Join("bin", "tests", "hello", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	build(other)
	says(other, "hello")
	linked, err := first.Stat()
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(first.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(linked, now) {
		t.Error("the program was linked once more, with nothing changed")
	}

	write("cmd/hello/main.go", moin)
	build(other)
	says(one, "hello")
	says(other, "moin")
}
