package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/controlplane"
)

// Every mutant is one of the code as it is. Whether its test notices it takes
// minutes to find out: make mutants.
func TestMutantsApply(t *testing.T) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := check(root, mutants()); err != nil {
		t.Errorf("mutants that have to follow the code:\n%v", err)
	}
}

func TestCheckMissesReasons(t *testing.T) {
	err := check(t.TempDir(), nil)
	for _, reason := range []string{"StaleRevision", "BlueprintChanged"} {
		if err == nil || !strings.Contains(err.Error(), "no mutant is for the reason "+reason) {
			t.Errorf("nothing is said of %s: %v", reason, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "Fresh:") {
		t.Errorf("Fresh is no denial: %v", err)
	}
}

func TestApply(t *testing.T) {
	const text = "a:\tx == y\n// x == z\nb: x  ==\n\ty.z\n"
	cases := map[string]struct {
		old, broken string
		want, err   string
	}{
		"once":                     {old: "x == z", broken: "false", want: "a:\tx == y\n// false\nb: x  ==\n\ty.z\n"},
		"white space is no matter": {old: "b: x == y.z", broken: "b: true", want: "a:\tx == y\n// x == z\nb: true\n"},
		"twice":                    {old: "x == y", broken: "false", err: `mutant c (f.go): its text is there 2 times and must be there once: "x == y"`},
		"never":                    {old: "y == x", broken: "false", err: `mutant c (f.go): its text is there 0 times and must be there once: "y == x"`},
		"meta characters":          {old: "x.==", broken: "", err: `mutant c (f.go): its text is there 0 times and must be there once: "x.=="`},
		"no text":                  {old: " ", broken: "false", err: "mutant c (f.go): it changes nothing"},
		"no change":                {old: "x == z", broken: "x  == z", err: "mutant c (f.go): it changes nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mutant{check: "c", file: "f.go", old: tc.old, broken: tc.broken}.apply(text)
			if message := words(err); message != tc.err {
				t.Fatalf("error %q, want %q", message, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestChoose(t *testing.T) {
	all := []mutant{{check: "StaleRevision", file: "a.go"}, {check: "PodForeign", file: "b.go"}}
	cases := map[string]struct {
		only string
		want []string
		err  string
	}{
		"all":        {"", []string{"StaleRevision", "PodForeign"}, ""},
		"by check":   {"Stale", []string{"StaleRevision"}, ""},
		"by file":    {"^b", []string{"PodForeign"}, ""},
		"none":       {"c.go", nil, `"c.go" matches no mutant's check or file`},
		"no pattern": {"(", nil, "\"(\" is no regular expression: error parsing regexp: missing closing ): `(`"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(all, tc.only)
			if message := words(err); message != tc.err {
				t.Fatalf("error %q, want %q", message, tc.err)
			}
			var got []string
			for _, m := range chosen {
				got = append(got, m.check)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestPattern(t *testing.T) {
	for test, want := range map[string]string{
		"TestA":                     "^TestA$",
		"TestA/pool gone (v0.1)":    `^TestA$/^pool_gone_\(v0\.1\)$`,
		"TestRead/pod/python-abc":   "^TestRead$/^pod$/^python-abc$",
		"TestA/the claim's, itself": `^TestA$/^the_claim's,_itself$`,
	} {
		if got := pattern(test); got != want {
			t.Errorf("pattern(%q) = %s, want %s", test, got, want)
		}
	}
}

// A mutant is killed only by the failure of its own test.
func TestJudge(t *testing.T) {
	const failedBuild = `{"ImportPath":"p","Action":"build-output","Output":"p/a.go:1:2: undefined: x\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`
	event := func(action, test string) string {
		return `{"Action":"` + action + `","Package":"p","Test":"` + test + "\"}\n"
	}
	cases := map[string]struct {
		output string
		want   string
	}{
		"killed":              {event("run", "TestA/a_b") + event("fail", "TestA/a_b") + event("fail", "TestA"), ""},
		"it hangs":            {event("run", "TestA") + event("run", "TestA/a_b") + `{"Action":"fail","Package":"p"}` + "\n", ""},
		"another one hangs":   {event("run", "TestA") + event("run", "TestA/c") + `{"Action":"fail","Package":"p"}` + "\n", "there is no such test"},
		"alive":               {event("pass", "TestA/a_b") + event("pass", "TestA"), "the test ends with pass"},
		"skipped":             {event("skip", "TestA/a_b") + event("pass", "TestA"), "the test ends with skip"},
		"another one fails":   {event("fail", "TestA/c") + event("fail", "TestA"), "there is no such test"},
		"it does not compile": {failedBuild, "no test ran:\np/a.go:1:2: undefined: x\nFAIL\tp [build failed]"},
		"no events":           {"go: cannot find main module\n", "no test ran:\ngo: cannot find main module"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judge("TestA/a b", parseOutcomes([]byte(tc.output))); string(got) != tc.want {
				t.Errorf("judged %q, want %q", got, tc.want)
			}
		})
	}
}

// A test that fails in any case kills nothing.
func TestPasses(t *testing.T) {
	for how, want := range map[string]string{
		"pass": "", "fail": "without a mutant the test ends with fail:\nx", "skip": "without a mutant the test ends with skip:\nx",
	} {
		if got := passes("TestA/a b", outcomes{of: map[string]string{"TestA/a_b": how}, output: "x"}); string(got) != want {
			t.Errorf("passes(%s) = %q, want %q", how, got, want)
		}
	}
}

// Real mutants, from the file to the failing test: what make mutants does for all of
// them.
func TestTrial(t *testing.T) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		t.Fatal(err)
	}
	const file = "internal/freshness/reasons.go"
	list := at(file, []mutant{
		{check: "killed", old: `return faults[r]`, broken: `return FaultNobody`, test: "TestEveryDenialHasAFault"},
		{check: "alive", old: `return faults[r]`, broken: `return faults[r] + 0`, test: "TestEveryDenialHasAFault"},
		{check: "broken", old: `return faults[r]`, broken: `return fault`, test: "TestEveryDenialHasAFault"},
		{check: "killed alone", old: `var faults = map[Reason]Fault{`, broken: `var faults = map[Reason]Fault{} //nolint
var _ = map[Reason]Fault{`, test: "TestEveryDenialHasAFault"},
		{check: "broken alone", old: `var faults = map[Reason]Fault{`, broken: `var faults = map[Reason]Foul{`, test: "TestEveryDenialHasAFault"},
	})
	tr := &trial{root: root, dir: t.TempDir()}
	if err := tr.prepare(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	killed, err := tr.mutated(t.Context(), list, &out)
	if err != nil {
		t.Fatal(err)
	}
	if killed != 2 {
		t.Errorf("%d killed, want 2:\n%s", killed, out.String())
	}
	for _, want := range []string{
		"killed", "internal/freshness TestEveryDenialHasAFault\n", "NOT KILLED: the test ends with pass\n",
		"NOT KILLED: it does not compile: ", "undefined: fault\n", "undefined: Foul",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
	missing := at(file, []mutant{{check: "x", old: `return faults[r]`, broken: `return 0`, test: "TestThatIsNotThere"}})
	if err := tr.prepare(t.Context(), missing); err != nil {
		t.Fatal(err)
	}
	killed, err = tr.mutated(t.Context(), missing, &out)
	if err != nil || killed != 0 || !strings.Contains(out.String(), "NOT KILLED: there is no such test\n") {
		t.Errorf("%d killed, %v, by a test that is not there:\n%s", killed, err, out.String())
	}
}

// A test counts as hung only after far more time than all of its package take.
func TestTimeoutFor(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		time.Second / 2: 30 * time.Second, 1500 * time.Millisecond: 30 * time.Second, 6 * time.Second: 2 * time.Minute,
	} {
		if got := timeoutFor(took); got != want {
			t.Errorf("patience(%s) = %s, want %s", took, got, want)
		}
	}
}
