package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := ScreenOf(&out, func() int { return 5 })
	for _, lines := range [][]string{{"one", "two"}, {"░░░░░░░"}, {}, {"again"}} {
		if err := s.Show(lines...); err != nil {
			t.Fatal(err)
		}
	}
	const want = "one\ntwo\n" + "\x1b[2A\x1b[J" + "░░░░░\n" + "\x1b[1A\x1b[J" + "again\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("written (-want,+got):\n%s", diff)
	}
	if err := ScreenOf(closed{}, func() int { return 5 }).Show("x"); err == nil {
		t.Error("a write that failed is no error")
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

// Who writes into a file or a pipe gets lines, and no movements.
func TestOnlyTerminalsAreScreens(t *testing.T) {
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if NewScreen(file) != nil || NewScreen(&bytes.Buffer{}) != nil {
		t.Error("a file is a screen")
	}
}

func TestProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		pool    Pool
		trouble *Trouble
		want    []string
	}{
		"some":                {Pool{Name: "a", Replicas: 4, Updated: 1, Claimable: 3, State: "Progressing"}, nil, []string{"a  █████░░░░░░░░░░░░░░░  1 of 4 up to date, 3 claimable  Progressing"}},
		"none yet":            {Pool{Name: "a", Replicas: 4, State: Pending}, nil, []string{"a  ░░░░░░░░░░░░░░░░░░░░  0 of 4 up to date, 0 claimable  Pending"}},
		"too many":            {Pool{Name: "a", Replicas: 2, Updated: 3, State: Complete}, nil, []string{"a  ████████████████████  3 of 2 up to date, 0 claimable  Complete"}},
		"no member is wanted": {Pool{Name: "a", State: Complete}, nil, []string{"a  ░░░░░░░░░░░░░░░░░░░░  0 of 0 up to date, 0 claimable  Complete"}},
		"trouble": {Pool{Name: "a", Replicas: 1, State: "Progressing"}, &Trouble{Member: "a-1", Why: "ImagePullBackOff"}, []string{
			"a  ░░░░░░░░░░░░░░░░░░░░  0 of 1 up to date, 0 claimable  Progressing", "  newest member a-1 is not ready: ImagePullBackOff",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.pool.Progress(tc.trouble)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
