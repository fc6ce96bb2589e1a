package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each mutant is in one part, and no part costs more than a sample may.
func TestSamples(t *testing.T) {
	all := mutants()
	in := map[mutant]int{}
	for i, part := range samples(all) {
		cost, folder := 0, ""
		for _, m := range part {
			in[m]++
			one, build := m.costs()
			if m.folder() != folder {
				cost += build
			}
			cost, folder = cost+one, m.folder()
		}
		if len(part) == 0 || cost > sampleCost {
			t.Errorf("part %d has %d mutants and costs %d, want %d at most", i+1, len(part), cost, sampleCost)
		}
	}
	want := map[mutant]int{}
	for _, m := range all {
		want[m]++
	}
	if diff := cmp.Diff(want, in, cmp.AllowUnexported(mutant{})); diff != "" {
		t.Errorf("mutants in parts (-want,+got):\n%s", diff)
	}
}

// Tests on a control plane take far longer: a part has few of them.
func TestSamplesOfClusterTests(t *testing.T) {
	for i, part := range samples(mutants()) {
		clusters := 0
		for _, m := range part {
			if m.folder() == "test/chart" {
				clusters++
			}
		}
		if clusters > 2 {
			t.Errorf("part %d has %d mutants whose test starts a control plane, want 2 at most", i+1, clusters)
		}
	}
}

// A commit always has the same part, and commits have all of them in the end.
func TestSample(t *testing.T) {
	all := mutants()
	const commits = 200
	names, tried := map[string]bool{}, map[mutant]bool{}
	for i := range commits {
		text := fmt.Sprintf("commit-%d", i)
		part, name, err := sample(all, text)
		if err != nil {
			t.Fatal(err)
		}
		again, sameName, err := sample(all, text)
		if err != nil || sameName != name || !cmp.Equal(part, again, cmp.AllowUnexported(mutant{})) {
			t.Fatalf("%s has %s once, and %s, %v then", text, name, sameName, err)
		}
		names[name] = true
		for _, m := range part {
			tried[m] = true
		}
	}
	for _, m := range all {
		if !tried[m] {
			t.Errorf("no commit tries mutant %s", m.title())
		}
	}
	if len(names) != commits {
		t.Errorf("%d names for %d commits: a name does not say of which it is", len(names), commits)
	}
}

func TestSampleOfNothing(t *testing.T) {
	if part, name, err := sample(mutants(), ""); err == nil {
		t.Errorf("got %d mutants, %s: all commits would try the same", len(part), name)
	}
}
