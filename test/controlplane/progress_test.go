package controlplane

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgressLine(t *testing.T) {
	tests := map[string]struct {
		p    *progress
		want string
	}{
		"at first":    {p: &progress{}, want: "etcd: 10 s"},
		"downloading": {p: &progress{modules: 12}, want: "etcd: 10 s, 12 modules downloaded"},
		"compiling": {
			p:    &progress{modules: 12, compiled: 100, needed: 351},
			want: "etcd: 10 s, 100 of at most 351 packages compiled, at most about 25 s to go",
		},
		"not counted":    {p: &progress{compiled: 100}, want: "etcd: 10 s, 100 packages compiled"},
		"built before":   {p: &progress{last: time.Minute}, want: "etcd: 10 s, about 50 s to go, as last time"},
		"slower than it": {p: &progress{last: 5 * time.Second}, want: "etcd: 10 s, longer than the 5 s of last time"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.p.title = "etcd"
			if diff := cmp.Diff(tc.want, tc.p.line(10*time.Second)); diff != "" {
				t.Errorf("line (-want,+got):\n%s", diff)
			}
		})
	}
}

// A line that is wider than the terminal does not stay one line.
func TestProgressFitsTheTerminal(t *testing.T) {
	server := &progress{title: "kube-apiserver", compiled: 100, needed: 300, last: time.Minute}
	controllers := &progress{title: "v1/agent-sandbox-controller", compiled: 100, needed: 351}
	tests := map[string]struct {
		builds  []*progress
		columns int
		want    string
	}{
		"one":             {[]*progress{server}, 120, "  kube-apiserver: 10 s, 100 of at most 300 packages compiled, about 50 s to go, as last time"},
		"one, narrow":     {[]*progress{server}, 80, "  kube-apiserver 10 s, 100/300, 50 s to go"},
		"two":             {[]*progress{server, controllers}, 100, "  kube-apiserver 10 s, 100/300, 50 s to go; agent-sandbox-controller 10 s, 100/351, 25 s to go"},
		"two, narrow":     {[]*progress{server, controllers}, 60, "  kube-apiserver 10 s, 100/300, 50 s to go; agent-sandbox-c"},
		"at first":        {[]*progress{{title: "etcd"}}, 15, "  etcd: 10 s"},
		"as wide as that": {[]*progress{{title: "etcd"}}, 12, "  etcd 10 s"},
		"nothing known":   {[]*progress{{title: "v1/agent-sandbox-controller"}}, 35, "  agent-sandbox-controller 10 s"},
		"none":            {nil, 80, "  "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, fitting(tc.builds, time.Time{}.Add(10*time.Second), tc.columns)); diff != "" {
				t.Errorf("line (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestProgressReadsWhatGoWrites(t *testing.T) {
	var p progress
	var rest bytes.Buffer
	w := p.reading(&rest)
	const output = "go: downloading k8s.io/api v0.37.2\ninternal/abi\nk8s.io/api/core/v1\n# example.test/broken\nmain.go:3:15: undefined: x\n"
	// It comes in pieces that end anywhere.
	for piece := range strings.SplitAfterSeq(output, "o") {
		if _, err := w.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if p.modules != 1 || p.compiled != 2 {
		t.Errorf("%d modules and %d packages, want 1 and 2", p.modules, p.compiled)
	}
	if diff := cmp.Diff("# example.test/broken\nmain.go:3:15: undefined: x\n", rest.String()); diff != "" {
		t.Errorf("rest (-want,+got):\n%s", diff)
	}
}

func TestProgressIsCounted(t *testing.T) {
	dir := toolModule(t, hello)
	var log bytes.Buffer
	p := newProgress(t.Context(), &log, target{title: "hello", moduleDir: dir, pkg: "example.test/tools/hello"}, 0)
	eventually(t, "the count of packages", func() (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.needed > 1, nil
	})
	p.show()
	p.stop()
	if got := log.String(); !strings.Contains(got, "0 of at most ") {
		t.Errorf("showed %q, want how many packages there are", got)
	}
}
