package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/hack/markdown"
)

func TestTable(t *testing.T) {
	rows := []row{
		{what: "ratio", unit: "x", aim: 1.3, figures: []float64{1.2, 1.5, 1.1}},
		{what: "requests", aim: 10, worst: true, figures: []float64{9, 11, 8}},
		{what: "time", unit: "s", figures: []float64{2}},
		{what: "nothing", unit: "B", aim: 1},
	}
	var out bytes.Buffer
	printTable(&out, rows)
	want := []string{
		"WHAT AIM FIGURE SPREAD MET", "ratio at most 1.3 x 1.20 x 1.10 to 1.50 yes",
		"requests at most 10 11.00 8.00 to 11.00 no", "time - 2.00 s 2.00 to 2.00 -", "nothing at most 1 B - - no",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"requests: 11.00, more than 10", "nothing: nothing was measured"}, missed(rows)); diff != "" {
		t.Errorf("missed (-want,+got):\n%s", diff)
	}
}

func TestSectionOfThePage(t *testing.T) {
	const before = "# Benchmarks\n\n<!-- bind -->\nold\n<!-- end of bind -->\n\n<!-- bind BENCH_PAIRS=1 -->\nkept\n<!-- end of bind BENCH_PAIRS=1 -->\n"
	on := setting{day: "2026-11-24", commit: "38c3708", goVersion: "go1.26", kubernetes: "v1.37.1", cpus: 2, load: "0.01", chosen: []string{"BENCH_LAG=10s"}}
	text := on.section("bind", []row{{what: "bind", unit: "x", aim: 1.1, figures: []float64{1.2, 1, 3}}, {what: "reads", figures: []float64{7}}})
	const want = "# Benchmarks\n\n<!-- bind -->\n" +
		"`BENCH_LAG=10s make bench BENCH=bind`, 2026-11-24, commit 38c3708: 2 CPUs, load 0.01 before, go1.26, Kubernetes v1.37.1.\n\n" +
		"| what  | aim           | figure | spread       | met |\n| ----- | ------------- | ------ | ------------ | --- |\n" +
		"| bind  | at most 1.1 x | 1.20 x | 1.00 to 3.00 | no  |\n| reads | -             | 7.00   | 7.00 to 7.00 | -   |\n" +
		"<!-- end of bind -->\n\n<!-- bind BENCH_PAIRS=1 -->\nkept\n<!-- end of bind BENCH_PAIRS=1 -->\n"
	got, err := withSection(before, "bind", text)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("withSection() error = %v (-want,+got):\n%s", err, diff)
	}
	for _, place := range []string{"pools", "bind BENCH_PAIRS=2"} {
		if _, err := withSection(before, place, text); err == nil || !strings.Contains(err.Error(), "<!-- "+place+" -->") {
			t.Errorf("withSection(%q) error = %v, want one that names the line to add", place, err)
		}
	}
}

func TestPlaceOnThePage(t *testing.T) {
	for want, chosen := range map[string][]string{
		"ready":                              nil,
		"ready BENCH_LAG=10s":                {envPairs + "=1", envLag + "=10s"},
		"ready BENCH_LAG=10s BENCH_LATE=all": {envLag + "=10s", envLate + "=all"},
	} {
		if got := place("ready", chosen); got != want {
			t.Errorf("place with %q: %q, want %q", chosen, got, want)
		}
	}
}

// A benchmark takes minutes: what cannot be published is said before.
func TestWhatHasNoPlaceIsSaidBefore(t *testing.T) {
	t.Setenv(markdown.UpdateDocs, "1")
	t.Setenv(envMembers, "3")
	const want = "<!-- bind BENCH_MEMBERS=3 -->"
	if _, err := newPublisher(t.Context(), "bind"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("newPublisher() error = %v, want one with %q", err, want)
	}
	for name := range benchmarks {
		if _, err := markdown.Changed(filepath.Join("..", "..", page), withIn(name, "")); err != nil {
			t.Errorf("%s has no place on the page: %v", name, err)
		}
	}
}
