package auditlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

func lostAt(kind, name string, received, done int64) *event {
	return &event{kind: kindOf(checker.AgentSandbox, checker.Resource(kind)), namespace: ns, name: name,
		received: time.UnixMicro(received), done: time.UnixMicro(done)}
}

func TestLostWritesBetweenTwoMoments(t *testing.T) {
	of := func(name string) *object {
		return &object{kind: kindOf(checker.AgentSandbox, checker.Pods), namespace: ns, name: name}
	}
	var l lostWrites
	if l.between(of("a"), 0, 100) {
		t.Error("something is lost before anything was")
	}
	// The first one takes until after the second one is over, and they come in no order.
	for _, e := range []*event{lostAt("pods", "a", 60, 70), lostAt("pods", "a", 10, 50), lostAt("pods", "a", 20, 30), lostAt("sandboxes", "b", 10, 50)} {
		l.add(e)
	}
	for name, tc := range map[string]struct {
		of          string
		from, until int64
		want        bool
	}{
		"before all":           {"a", 0, 9, false},
		"as the first begins":  {"a", 0, 10, true},
		"within a long one":    {"a", 40, 45, true},
		"as the first ends":    {"a", 50, 55, true},
		"between two":          {"a", 51, 59, false},
		"around all":           {"a", 0, 100, true},
		"after all":            {"a", 71, 100, false},
		"another object":       {"c", 0, 100, false},
		"another kind's write": {"b", 0, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.between(of(tc.of), tc.from, tc.until); got != tc.want {
				t.Errorf("lost between %d and %d: %t, want %t", tc.from, tc.until, got, tc.want)
			}
		})
	}
}

// Beyond a bound, nothing is kept but the time in which writes to a kind were lost: whatever lies in it may be missed.
func TestLostWritesAreBounded(t *testing.T) {
	var l lostWrites
	for i := range int64(maxLost) {
		l.add(lostAt("pods", fmt.Sprint(i), i, i))
	}
	l.add(lostAt("sandboxes", "x", 300, 310))
	l.add(lostAt("sandboxes", "y", 200, 210))
	if len(l.byObject) != maxLost || len(l.rest) != 1 {
		t.Errorf("%d objects and %d kinds are kept, want %d and 1", len(l.byObject), len(l.rest), maxLost)
	}
	one := &object{kind: kindOf(checker.AgentSandbox, checker.Sandboxes), namespace: ns, name: "any"}
	pod := &object{kind: kindOf(checker.AgentSandbox, checker.Pods), namespace: ns, name: "any"}
	for name, tc := range map[string]struct {
		of          *object
		from, until int64
		want        bool
	}{
		"within":       {one, 250, 260, true},
		"before":       {one, 100, 199, false},
		"after":        {one, 311, 400, false},
		"another kind": {pod, 250, 260, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := l.between(tc.of, tc.from, tc.until); got != tc.want {
				t.Errorf("lost between %d and %d: %t, want %t", tc.from, tc.until, got, tc.want)
			}
		})
	}
}

// What a log says in many ways is told in few words.
func TestCoverageIsBounded(t *testing.T) {
	c := newCast(t)
	var lines []string
	for i := range 10 {
		c.level = fmt.Sprintf("Level%d", i)
		c.mod(builders.PoolFrom(c.pool))
		lines = append(lines, fmt.Sprintf(`{"message":"{\"auditID\":\"%d\",\"x\":{"}`, i))
	}
	l := read(t, c.text(), strings.Join(lines, "\n")+"\n")
	if n := len(l.coverage.lost[kindOf(checker.AgentSandbox, checker.Pools)]); n != 1 {
		t.Errorf("%d causes are kept, want 1", n)
	}
	if notes := strings.Join(l.coverage.missing(checker.AgentSandbox).Notes, "\n"); !strings.Contains(notes, "10: no level that is known") ||
		!strings.Contains(notes, "10 events are not whole and not judged: audit-1.log: line 1, audit-1.log: line 2, audit-1.log: line 3 ….") {
		t.Errorf("notes: %s", notes)
	}
}
