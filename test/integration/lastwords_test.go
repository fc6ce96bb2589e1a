package integration

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// lastLines of Freshbind's log, cut to lineLength bytes, are printed for a test that
	// failed.
	lastLines, lineLength = 60, 600
)

// tellLastWords has a test that fails print what Freshbind logged last about its namespace:
// what it waited for in vain is gone with the cluster.
func (s *stage) tellLastWords() {
	s.t.Cleanup(func() {
		if !s.t.Failed() {
			return
		}
		log, err := wholeLines(s.w.Guard.LogPath(), 0)
		if err != nil {
			s.t.Logf("reading Freshbind's log: %v", err)
			return
		}
		s.t.Logf("Freshbind was started %d times, and said last about namespace %s:\n%s", s.w.Guard.Starts(), s.Name, linesAbout(log, s.Name))
	})
}

func linesAbout(log []byte, namespace string) string {
	var out []string
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(`"`+namespace+`"`)) && !bytes.Contains(line, []byte(namespace+"/")) {
			continue
		}
		if len(line) > lineLength {
			line = append(line[:lineLength:lineLength], "…\n"...)
		}
		out = append(out, strings.ToValidUTF8(string(line), string(utf8.RuneError)))
	}
	return strings.Join(out[max(0, len(out)-lastLines):], "")
}

func TestLinesAbout(t *testing.T) {
	long := `{"namespace":"it-1","msg":"` + strings.Repeat("a", lineLength) + `"}`
	log := `{"namespace":"it-1"}` + "\n" + `{"namespace":"it-11"}` + "\n" + `{"error":"reading it-1/python"}` + "\n" + long + "\n"
	want := `{"namespace":"it-1"}` + "\n" + `{"error":"reading it-1/python"}` + "\n" + long[:lineLength] + "…\n"
	if got := linesAbout([]byte(log), "it-1"); got != want {
		t.Errorf("linesAbout() = %s, want %s", got, want)
	}
	if got := strings.Count(linesAbout(bytes.Repeat([]byte(log), lastLines), "it-1"), "\n"); got != lastLines {
		t.Errorf("linesAbout() has %d lines of many, want %d", got, lastLines)
	}
}
