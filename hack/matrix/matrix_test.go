package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/hack/markdown"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

func TestParseChosen(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want choice
		err  string
	}{
		"nothing said":                 {"", choice{kubernetesVersions, upstream.AllReleases()}, ""},
		"some":                         {"v1.37.2,agent-sandbox@v0.5.3,v1.30.14", choice{[]string{"v1.30.14", "v1.37.2"}, []string{"v0.5.3"}}, ""},
		"unknown":                      {"v1.29.0", choice{}, `MATRIX: "v1.29.0" is not here`},
		"a release without its prefix": {"v0.5.3", choice{}, `"v0.5.3" is not here`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseChosen(tc.text)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, choice{nilIfEmpty(got.kubernetes), nilIfEmpty(got.releases)}, cmp.AllowUnexported(choice{})); diff != "" {
				t.Errorf("choice (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestParseOptions(t *testing.T) {
	all := choice{kubernetesVersions, upstream.AllReleases()}
	for name, tc := range map[string]struct {
		env  map[string]string
		want options
	}{
		"nothing said":  {nil, options{chosen: all}},
		"results":       {map[string]string{"MATRIX_RESULTS": "a/folder"}, options{chosen: all, results: "a/folder"}},
		"documentation": {map[string]string{"FRESHBIND_UPDATE_DOCS": "1"}, options{chosen: all, updateDocs: true}},
		"what to run, too": {
			map[string]string{"MATRIX": "v1.37.2", "MATRIX_RESULTS": "a", "FRESHBIND_UPDATE_DOCS": "1"},
			options{choice{kubernetes: []string{"v1.37.2"}}, "a", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(func(key string) string { return tc.env[key] })
			if err != nil {
				t.Fatal(err)
			}
			got.chosen = choice{nilIfEmpty(got.chosen.kubernetes), nilIfEmpty(got.chosen.releases)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{}, choice{})); diff != "" {
				t.Errorf("options (-want,+got):\n%s", diff)
			}
		})
	}
}

func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// The newest of the list is what all other tests run on.
func TestTheNewestIsThePinnedOne(t *testing.T) {
	pinned, err := controlplane.PinnedKubernetes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if newest := kubernetesVersions[len(kubernetesVersions)-1]; newest != pinned {
		t.Errorf("the newest here is %s, and the tests' own is %s", newest, pinned)
	}
}

func TestTally(t *testing.T) {
	const events = `{"Action":"run","Package":"m/test/integration","Test":"TestFaults"}
{"Action":"attr","Package":"m/test/integration","Test":"TestFaults/v1","Key":"kubernetes","Value":"v1.37.2"}
{"Action":"output","Package":"m/test/integration","Test":"TestFaults/v1/a","Output":"it went wrong\n"}
{"Action":"fail","Package":"m/test/integration","Test":"TestFaults/v1/a","Elapsed":1}
{"Action":"pass","Package":"m/test/integration","Test":"TestFaults/v1/b","Elapsed":1}
{"Action":"output","Package":"m/test/integration","Test":"TestFaults/v1/c","Output":"no such case\n"}
{"Action":"skip","Package":"m/test/integration","Test":"TestFaults/v1/c"}
{"Action":"fail","Package":"m/test/integration","Test":"TestFaults/v1"}
{"Action":"fail","Package":"m/test/integration","Test":"TestFaults","Elapsed":3}
{"Action":"pass","Package":"m/test/integration","Test":"TestPolicies","Elapsed":2}
{"Action":"pass","Package":"m/test/integration","Test":"TestWhatTheAPIServerAddsToPods","Elapsed":2}
{"Action":"fail","Package":"m/test/integration","Elapsed":5}
{"Action":"pass","Package":"m/test/chart","Test":"TestInstall"}
{"Action":"output","Package":"m/test/chart","Output":"a race was found\n"}
{"Action":"fail","Package":"m/test/chart"}
{"Action":"skip","Package":"m/test/scheduler"}
`
	var out, log strings.Builder
	all := tally{}
	if err := all.read(strings.NewReader(events), &out, &log, "v1.37.2"); err != nil {
		t.Fatal(err)
	}
	want := map[string]outcome{
		"integration": {passed: 2, failed: 1, skipped: 1},
		"policies":    {passed: 1},
		"chart":       {passed: 1, failed: 1},
		"scheduler":   {},
	}
	if diff := cmp.Diff(want, all.outcomes(), cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("outcomes (-want,+got):\n%s", diff)
	}
	for _, line := range []string{"fail integration TestFaults/v1/a\n      it went wrong", "no such case", "pass integration TestPolicies\n", "integration: 1 FAILED, 2 passed, 1 skipped, after 5 s", "a race was found"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("people are not told %q:\n%s", line, out.String())
		}
	}
	if want := "it went wrong\nno such case\na race was found\n"; log.String() != want {
		t.Errorf("log is %q, want %q", log.String(), want)
	}
}

func TestTallyOfWhatIsNoEvent(t *testing.T) {
	if err := (tally{}).read(strings.NewReader("panic: oh\n"), io.Discard, io.Discard, "v1.37.2"); err == nil || !strings.Contains(err.Error(), "panic: oh") {
		t.Errorf("got error %v, want one with the line", err)
	}
}

func TestTallyOfAnotherKubernetes(t *testing.T) {
	const attr = `{"Action":"attr","Package":"m/test/chart","Test":"TestInstall","Key":"kubernetes","Value":"v1.37.2"}`
	want := "chart TestInstall runs on Kubernetes v1.37.2"
	if err := (tally{}).read(strings.NewReader(attr), io.Discard, io.Discard, "v1.30.14"); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestKeepResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	for _, events := range []string{"the first", "a later"} {
		if err := keepResults(dir, "v1.30.14", []byte(events)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "matrix-v1.30.14.json"))
	if err != nil || string(got) != "a later" {
		t.Errorf("kept %q, %v; want the later run", got, err)
	}
	if err := keepResults("", "v1.30.14", nil); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := os.Stat("matrix-v1.30.14.json"); !os.IsNotExist(err) {
		t.Errorf("without a folder a file is written: %v", err)
	}
}

func ran(passed int) map[string]outcome {
	tests := map[string]outcome{}
	for _, column := range testColumns {
		tests[column] = outcome{passed: passed}
	}
	return tests
}

func TestFault(t *testing.T) {
	good := results{
		Kubernetes: []kubernetesResult{{Version: "v1.37.2", tests: ran(2)}},
		Releases:   []releaseResult{{Version: "v0.5.3", guard: outcome{passed: 1, skipped: 1}}},
	}
	if err := good.fault(); err != nil {
		t.Errorf("all passed, and the fault is %v", err)
	}
	failed := ran(2)
	failed["chart"], failed["policies"] = outcome{passed: 1, failed: 1}, outcome{skipped: 3}
	bad := results{
		Kubernetes: []kubernetesResult{{Version: "v1.30.14", tests: failed}}, Releases: []releaseResult{{Version: "v0.1.1"}},
	}
	want := "Kubernetes v1.30.14, policies: 3 skipped; Kubernetes v1.30.14, chart: 1 FAILED, 1 passed; agent-sandbox v0.1.1, integration: not run"
	if err := bad.fault(); err == nil || err.Error() != want {
		t.Errorf("fault = %v, want %s", err, want)
	}
}

func TestTable(t *testing.T) {
	r := results{Releases: []releaseResult{{"v0.5.3", "v1.37.2", outcome{passed: 31, skipped: 2}}}}
	want := `
| agent-sandbox | on Kubernetes | guard                |
| ------------- | ------------- | -------------------- |
| v0.5.3        | v1.37.2       | 31 passed, 2 skipped |
`
	if diff := cmp.Diff(want, r.tables()); diff != "" {
		t.Errorf("tables (-want,+got):\n%s", diff)
	}
}

// A page keeps what was not run again.
func TestWithResults(t *testing.T) {
	before := "# Page\n\n" + markdown.Table(kubernetesHead, nil) + "\nWords.\n\n" + markdown.Table(releaseHead, [][]string{
		{"v0.5.3", "v1.36.3", "1 passed"}, {"v0.5.5", "v1.36.3", "2 passed"},
	})
	got, err := withResults(before, results{
		Kubernetes: []kubernetesResult{
			{Version: "v1.37.2", features: features{mutatingPolicies: "v1", watchList: true}, tests: ran(2)},
			{Version: "v1.30.14", features: features{matchConditions: true}, tests: ran(2)},
		},
		Releases: []releaseResult{{"v0.5.3", "v1.37.2", outcome{passed: 3}}, {"v0.1.1", "v1.37.2", outcome{failed: 1, passed: 3}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "# Page\n\n" + markdown.Table(kubernetesHead, [][]string{
		{"v1.30.14", "no", "yes", "no", "no", "yes", "2 passed", "2 passed", "2 passed", "2 passed"},
		{"v1.37.2", "v1", "no", "yes", "no", "yes", "2 passed", "2 passed", "2 passed", "2 passed"},
	}) + "\nWords.\n\n" + markdown.Table(releaseHead, [][]string{
		{"v0.1.1", "v1.37.2", "1 FAILED, 3 passed"}, {"v0.5.3", "v1.37.2", "3 passed"}, {"v0.5.5", "v1.36.3", "2 passed"},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want,+got):\n%s", diff)
	}
	if _, err := withResults("# Another page\n", results{}); err == nil {
		t.Error("a page without tables is taken")
	}
}

func TestCompareVersions(t *testing.T) {
	if compareVersions("v1.9.1", "v1.10.0") >= 0 || compareVersions("v1.10.0", "v1.10.0") != 0 {
		t.Error("versions are not compared by their numbers")
	}
}
