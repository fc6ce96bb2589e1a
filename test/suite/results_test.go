package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testEvents is what go test -json prints of some tests of test/a.
const testEvents = `{"Time":"2026-11-01T10:00:00Z","Action":"start","Package":"example.com/freshbind/freshbind/test/a"}
{"Time":"2026-11-01T10:00:00Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases"}
{"Time":"2026-11-01T10:00:00Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0"}
{"Time":"2026-11-01T10:00:00Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0/late"}
{"Time":"2026-11-01T10:00:01Z","Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0/late","Key":"kubernetes","Value":"v1.37.1"}
{"Time":"2026-11-01T10:00:01Z","Action":"output","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0/late","Output":"\n"}
{"Time":"2026-11-01T10:00:02Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0/late","Elapsed":1.5}
{"Time":"2026-11-01T10:00:02Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.9.0","Elapsed":2}
{"Time":"2026-11-01T10:00:03Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.10.0"}
{"Time":"2026-11-01T10:00:03Z","Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.10.0","Key":"kubernetes","Value":"v1.30.14"}
{"Time":"2026-11-01T10:00:04Z","Action":"pass","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases/v0.10.0","Elapsed":61.2}
{"Time":"2026-11-01T10:00:05Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/a","Test":"TestReleases","Elapsed":64}
{"Time":"2026-11-01T10:00:05Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne"}
{"Time":"2026-11-01T10:00:06Z","Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Key":"agent-sandbox","Value":"v0.10.0"}
{"Time":"2026-11-01T10:00:06Z","Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Key":"kubernetes","Value":"v1.37.1"}
{"Time":"2026-11-01T10:00:06Z","Action":"skip","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne/alone","Elapsed":0}
{"Time":"2026-11-01T10:00:07Z","Action":"pass","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Elapsed":2}
{"Time":"2026-11-01T10:00:07Z","Action":"run","Package":"example.com/freshbind/freshbind/test/a","Test":"TestHung"}
{"Time":"2026-11-01T10:00:07Z","Action":"run","Package":"example.com/freshbind/freshbind/test/b","Test":"TestOne"}
{"Time":"2026-11-01T10:00:07Z","Action":"pass","Package":"example.com/freshbind/freshbind/internal/a","Test":"TestOne"}
{"Time":"2026-11-01T10:00:08Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/a","Elapsed":70}
{"Action":"run","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts"}
{"Action":"attr","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts/x","Key":"agent-sandbox","Value":"v0.9.0"}
{"Action":"attr","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts/x","Key":"kubernetes","Value":"v1.37.1"}
{"Time":"2026-11-01T10:00:08Z","Action":"pass","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts/x","Elapsed":1}
{"Action":"attr","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts/y","Key":"agent-sandbox","Value":"v0.9.0"}
{"Time":"2026-11-01T10:00:09Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts/y","Elapsed":1}
{"Time":"2026-11-01T10:00:09Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/b","Test":"TestParts","Elapsed":3}
`

func TestResults(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 11, 1, 10, 0, second, 0, time.UTC) }
	tests := map[string]struct {
		row  row
		want []result
	}{
		"a result for each release, the older first": {row: row{pkg: "a", test: "TestReleases"}, want: []result{
			{pkg: "a", test: "TestReleases/v0.9.0", outcome: "fail", took: 2 * time.Second, last: at(2), kubernetes: "v1.37.1", release: "v0.9.0"},
			{pkg: "a", test: "TestReleases/v0.10.0", outcome: "pass", took: 61200 * time.Millisecond, last: at(4), kubernetes: "v1.30.14", release: "v0.10.0"},
		}},
		"subtests that say their release": {row: row{pkg: "b", test: "TestParts"}, want: []result{
			{pkg: "b", test: "TestParts", outcome: "fail", took: 3 * time.Second, last: at(9), kubernetes: "v1.37.1", release: "v0.9.0"},
		}},
		"subtests of the same release, one of which failed": {row: row{pkg: "b", test: "TestParts/"}, want: []result{
			{pkg: "b", test: "TestParts/x", outcome: "fail", took: time.Second, last: at(8), kubernetes: "v1.37.1", release: "v0.9.0"},
		}},
		"subtests by how they begin": {row: row{pkg: "a", test: "TestReleases/v0.1"}, want: []result{
			{pkg: "a", test: "TestReleases/v0.10.0", outcome: "pass", took: 61200 * time.Millisecond, last: at(4), kubernetes: "v1.30.14", release: "v0.10.0"},
		}},
		"a test that says its release": {row: row{pkg: "a", test: "TestOne"}, want: []result{
			{pkg: "a", test: "TestOne", outcome: "pass", took: 2 * time.Second, last: at(7), kubernetes: "v1.37.1", release: "v0.10.0"},
		}},
		"a test that never ended":     {row: row{pkg: "a", test: "TestHung"}, want: []result{{pkg: "a", test: "TestHung", last: at(7)}}},
		"a test of another package":   {row: row{pkg: "b", test: "TestOne"}, want: []result{{pkg: "b", test: "TestOne", last: at(7)}}},
		"a test that did not run":     {row: row{pkg: "a", test: "TestNone"}},
		"a name that begins the same": {row: row{pkg: "a", test: "TestRel"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			rs := results{}
			if err := rs.read(strings.NewReader(testEvents)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rs.of(tc.row), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("results (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 11, 1, 10, 0, second, 0, time.UTC) }
	first := result{test: "TestA/v1", release: "v1.0.0", kubernetes: "v1.37.1", outcome: "pass", last: at(10)}
	with := func(change func(*result)) result {
		r := first
		change(&r)
		return r
	}
	earlier := with(func(r *result) { r.last, r.outcome = at(9), "fail" })
	later := with(func(r *result) { r.last, r.outcome = at(11), "" })
	older := with(func(r *result) { r.kubernetes = "v1.9.1" })
	other := with(func(r *result) { r.release = "v0.10.0" })
	another := with(func(r *result) { r.test = "TestA/v2" })
	tests := map[string]struct{ more, want []result }{
		"nothing":                     {want: []result{first}},
		"of an earlier run":           {more: []result{earlier}, want: []result{first}},
		"of a later run, which hangs": {more: []result{later}, want: []result{later}},
		"on another Kubernetes":       {more: []result{older}, want: []result{older, first}},
		"with another release":        {more: []result{other}, want: []result{other, first}},
		"of another subtest":          {more: []result{another}, want: []result{first, another}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, latest([]result{first}, tc.more), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("results (-want,+got):\n%s", diff)
			}
		})
	}
}

// again is what a run of make matrix says.
const again = `{"Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Key":"agent-sandbox","Value":"v0.10.0"}
{"Action":"attr","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Key":"kubernetes","Value":"v1.30.14"}
{"Time":"2026-11-02T10:00:07Z","Action":"fail","Package":"example.com/freshbind/freshbind/test/a","Test":"TestOne","Elapsed":2}
{"Action":"attr","Package":"example.com/freshbind/freshbind/test/b","Test":"TestMore/v0.9.1","Key":"kubernetes","Value":"v1.37.1"}
{"Time":"2026-11-02T10:00:09Z","Action":"pass","Package":"example.com/freshbind/freshbind/test/b","Test":"TestMore/v0.9.1","Elapsed":2}
`

func TestPage(t *testing.T) {
	rows, err := parse(`
short a TestReleases fresh why
rest  a TestOne      fresh,once why
rest  a TestHung     once why
rest  a TestNone     alive why
rest  b TestOther    - why
releases b TestMore  once why
releases b TestNever once why
`)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	for name, events := range map[string]string{"test.json": testEvents, "matrix-v1.30.14.json": again} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(events), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	var page strings.Builder
	if err := writePage(&page, rows, files); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nOn Kubernetes v1.37.1, with each release of agent-sandbox, the tests that passed:\n\n" +
			"| Promise | without agent-sandbox | v0.9.0 | v0.9.1 | v0.10.0 |\n|---|---|---|---|---|\n" +
			"| [fresh](#fresh): no claim gets what was built from an older revision | – | **0 of 1** | – | 1 of 1 |\n",
		"| [once](#once): a member goes to one claim, once | **0 of 1** | – | 1 of 1 | 1 of 1 |\n",
		"\nOn each Kubernetes, with any release:\n\n" +
			"| Promise | v1.30.14 | v1.37.1 |\n|---|---|---|\n" +
			"| [fresh](#fresh): no claim gets what was built from an older revision | **1 of 2** | **1 of 2** |\n",
		"| `test/a` TestReleases/v0.9.0 | v1.37.1 | v0.9.0 | **failed** | 2 | 2026-11-01 |\n",
		"| `test/a` TestReleases/v0.10.0 | v1.30.14 | v0.10.0 | passed | 61 | 2026-11-01 |\n",
		"| `test/a` TestOne | v1.30.14 | v0.10.0 | **failed** | 2 | 2026-11-02 |\n| `test/a` TestOne | v1.37.1 | v0.10.0 | passed | 2 | 2026-11-01 |\n",
		"| `test/b` TestMore/v0.9.1 | v1.37.1 | v0.9.1 | passed | 2 | 2026-11-02 |\n",
		"| `test/a` TestHung | – | – | **did not end** | | |\n",
		"| `test/a` TestNone | | | not run | | |\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"TestOther", "TestNever"} {
		if strings.Contains(page.String(), not) {
			t.Errorf("%s is on the page: it shows no promise, or is make matrix's, which did not run it", not)
		}
	}
	if t.Failed() {
		t.Log(page.String())
	}
}

func TestPageRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("ok example.com 1s"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		files []string
		want  string
	}{
		"no files":         {want: "run make test"},
		"a missing file":   {files: []string{"missing.json"}, want: "missing.json"},
		"what is not JSON": {files: []string{broken}, want: broken},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := writePage(new(strings.Builder), nil, tc.files)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Promises are explained in one place to readers, and in another to the page.
func TestContributingListsThePromises(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range properties {
		if line := "| `" + p.name + "` | " + p.means + " |\n"; !strings.Contains(string(text), line) {
			t.Errorf("CONTRIBUTING.md lacks the line %q", line)
		}
	}
}
