package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheChartIsGenerated(t *testing.T) {
	const dir = "../../charts/freshbind"
	files, err := generated(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("charts/freshbind/%s is not what `make chart` writes (-want,+got):\n%s", name, diff)
		}
	}
}
