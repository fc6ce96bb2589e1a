package controlplane

import (
	"os"
	"path/filepath"
	"testing"
)

// What is linked for one is there for the next, who may write over its own name.
func TestBuildCheckoutLinksOnce(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("an older program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{one, other} {
		if err := BuildCheckout(t.Context(), "./test/suite", program); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := Go(t.Context(), ".", "version", one, other); err != nil {
		t.Errorf("what was built is no program: %v\n%s", err, output)
	}
	// Another file system has copies, which are no one file.
	root, err := RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	built := linked(t, filepath.Join(root, "bin", "tests", "suite", "suite"))
	if err := BuildCheckout(t.Context(), "./test/suite", one); err != nil {
		t.Fatal(err)
	}
	if now := linked(t, filepath.Join(root, "bin", "tests", "suite", "suite")); !os.SameFile(built, now) {
		t.Error("the program was linked once more, with nothing changed")
	}
}

func linked(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
