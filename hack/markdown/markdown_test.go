package markdown

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	const want = "| a   | b |\n| --- | - |\n| é   | 1 |\n| abc |   |\n"
	if diff := cmp.Diff(want, Table([]string{"a", "b"}, [][]string{{"é", "1"}, {"abc", ""}})); diff != "" {
		t.Errorf("Table() (-want,+got):\n%s", diff)
	}
}

func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no place")
	if err := Change(path, func(string) (string, error) { return "lost", failed }); !errors.Is(err, failed) {
		t.Errorf("Change() error = %v, want %v", err, failed)
	}
	if err := Change(path, func(text string) (string, error) { return text + " and new", nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != "old and new" || err != nil {
		t.Errorf("the page is %q (error %v), want %q", got, err, "old and new")
	}
	if err := Change(path+"x", func(text string) (string, error) { return text, nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Change() of a page that is not there: error = %v", err)
	}
}
