package auditlog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

// keep returns the lines about which f says so.
func keep(lines []string, f func(line string) bool) string {
	var out []string
	for _, l := range lines {
		if f(l) {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

func about(resource string) func(string) bool {
	return func(line string) bool { return strings.Contains(line, `"resource":"`+resource+`"`) }
}

func not(f func(string) bool) func(string) bool { return func(s string) bool { return !f(s) } }

const noNamespaces = "No write to namespaces is in the log. Modes and floors that follow from labels of namespaces are not known."

// judgedAs compares what a log is judged as, and what is said to be missing in it.
func judgedAs(t *testing.T, text string, want, notes []string, judgeable bool) {
	t.Helper()
	got, missing := judge(t, text)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(notes, missing.Notes); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
	if missing.Judgeable != judgeable {
		t.Errorf("judgeable is %t", missing.Judgeable)
	}
}

func TestWhatIsMissing(t *testing.T) {
	cases := map[string]struct {
		text      func(t *testing.T) string
		want      []string
		notes     []string
		judgeable bool
	}{
		"nothing but namespaces": {judgeable: true, want: []string{"c1: Stale"}, notes: []string{noNamespaces},
			text: func(t *testing.T) string { return stale(t).text() }},
		"no Pods": {judgeable: true, want: []string{"c1: Unjudged"},
			notes: []string{"No write to pods is in the log. Whether a sandbox's Pod lived when it was bound is not judged.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.serve("c1")
				return keep(c.lines, not(about("pods")))
			}},
		"the update of the template at level Metadata": {judgeable: true, want: []string{"c1: Unjudged"},
			notes: []string{"1 write of sandboxtemplates is without what was stored (1: level Metadata): this needs level RequestResponse. " +
				"Binds are not judged where the template's content is not known.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.level = "Metadata"
				c.update("sandbox:v2")
				c.level = ""
				c.serve("c1")
				c.update("sandbox:v3")
				return c.text()
			}},
		"no template": {judgeable: true, want: []string{"c1: Unjudged"},
			notes: []string{"No write to sandboxtemplates is in the log. Binds are not judged where the template's content is not known.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.serve("c1")
				return keep(c.lines, not(about("sandboxtemplates")))
			}},
		"no pool": {judgeable: true, want: []string{"c1: Unjudged"},
			notes: []string{"No write to sandboxwarmpools is in the log. Binds are not judged where it is not known which template a pool referred to.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.serve("c1")
				return keep(c.lines, not(about("sandboxwarmpools")))
			}},
		"no claim": {want: []string{"c1: Unjudged"},
			notes: []string{"No write to sandboxclaims is in the log. Binds whose claim is not known are not judged.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.serve("c1")
				return keep(c.lines, not(about("sandboxclaims")))
			}},
		"a cut object": {judgeable: true, want: []string{"c1: Unjudged"},
			notes: []string{"1 write of sandboxtemplates is without what was stored (1: cut by the API server or the provider): this needs level RequestResponse. " +
				"Binds are not judged where the template's content is not known.", noNamespaces},
			text: func(t *testing.T) string {
				c := newCast(t)
				c.update("sandbox:v2")
				last := &c.lines[len(c.lines)-1]
				*last = strings.Replace(*last, `"auditID"`, `"annotations":{"audit.k8s.io/truncated":"true"},"auditID"`, 1)
				c.serve("c1")
				c.update("sandbox:v3")
				return c.text()
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			judgedAs(t, tc.text(t), tc.want, tc.notes, tc.judgeable)
		})
	}
}

// What was bound before the log began is counted, and not judged; members that were there are judged by what is known.
func TestWhatWasThereBefore(t *testing.T) {
	c := newCast(t)
	c.serve("before")
	old := len(c.lines)
	c.member = c.mod(builders.SandboxFrom(c.member).Ready(false))
	c.mod(builders.TemplateFrom(c.template))
	c.mod(builders.PoolFrom(c.pool))
	c.birth("m2")
	c.serve("c1")
	h, _, err := read(t, strings.Join(c.lines[old:], "\n")).History("", checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := h.Judge()
	var got []string
	for _, b := range r.Binds {
		got = append(got, b.Claim.Name+": "+string(b.Class))
	}
	if diff := cmp.Diff([]string{"c1: Fresh"}, got); diff != "" {
		t.Errorf("verdicts (-want,+got):\n%s", diff)
	}
	if n := r.Namespace(ns).BoundBefore; n != 1 {
		t.Errorf("%d bound before, want 1", n)
	}
}

func TestNothingToJudge(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no event at all":       {`{"hello":"world"}`, "No line is an event of audit.k8s.io/v1, so nothing is judged."},
		"another stage":         {strings.ReplaceAll(stale(t).text(), "ResponseComplete", "RequestReceived"), "Stage ResponseComplete is omitted"},
		"all of it at a glance": {strings.ReplaceAll(strings.ReplaceAll(stale(t).text(), `"RequestResponse"`, `"Metadata"`), `"responseObject"`, `"x"`), "level Metadata"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, missing, err := read(t, tc.text).History("", checker.Options{})
			if !errors.Is(err, ErrNothing) || missing.Judgeable {
				t.Errorf("error %v, judgeable %t", err, missing.Judgeable)
			}
			if !strings.Contains(strings.Join(missing.Notes, "\n"), tc.want) {
				t.Errorf("notes %q, want %q", missing.Notes, tc.want)
			}
		})
	}
}

func TestHostileInput(t *testing.T) {
	deep := `{"auditID":"1","responseObject":` + strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_001)
	good := stale(t).text()
	cases := map[string]struct{ text, want string }{
		"a huge line":               {good + `{"a":"` + strings.Repeat("x", maxValue) + `"}`, "x.log: line 11: it is longer than 16 MiB"},
		"a huge line in a document": {"{\n" + `"a":"` + strings.Repeat("x", maxValue) + `"}`, "x.log: line 1: it is longer than 16 MiB"},
		"deep JSON":                 {good + deep + "\n", "x.log: line 11: not an audit event: it is nested deeper than 10100 levels"},
		"no JSON":                   {good + "hello\n", `x.log: line 11: not an audit event: it begins with "hello"`},
		"half a line in between":    {good + `{"auditID":"1"` + "\n" + good, "x.log: line 11: not an audit event: it ends in the middle of a JSON value"},
		"a resourceVersion that is none": {strings.ReplaceAll(good, `"resourceVersion":"10`, `"resourceVersion":"x10`),
			`x.log: line 1: not an audit event: responseObject.metadata.resourceVersion: "x101" is not a number above 0`},
		"brackets that do not match": {strings.Replace(good, `"spec":{`, `"spec":{]`, 1), "x.log: line 1: not an audit event: there is ']' where '}' should be"},
		"two events in a line":       {good + `{"auditID":"1"}{"auditID":"2"}` + "\n", `x.log: line 11: not an audit event: there is "{\"auditID\":\"2\"}" after its end`},
		"a time that is none":        {strings.ReplaceAll(good, "2026-01-02", "26-1-2"), "x.log: line 1: not an audit event: requestReceivedTimestamp"},
		"owners that are none":       {strings.ReplaceAll(good, `"ownerReferences":[`, `"ownerReferences":[1,`), "ownerReferences"},
		"gzip that is cut":           {"\x1f\x8b\x08", "x.log: decompress"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := New().Read("x.log", strings.NewReader(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// Whatever patch the API server takes, and logs, the log is judged: a tenant hides no bind by one.
func TestADeepPatchHidesNothing(t *testing.T) {
	patch := strings.Repeat("[", jsonDepth-1) + "1" + strings.Repeat("]", jsonDepth-1)
	patch = `{"x":` + patch + `}`
	if !json.Valid([]byte(patch)) || json.Valid([]byte("["+patch+"]")) {
		t.Fatal("encoding/json has another limit: jsonDepth has to be it")
	}
	c := stale(t)
	want, _ := judge(t, c.text())
	got, _ := judge(t, strings.ReplaceAll(c.text(), `"auditID"`, `"requestObject":`+patch+`,"auditID"`))
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("verdicts %q (-want,+got):\n%s", got, diff)
	}
}

func TestSpecThatIsNoJSON(t *testing.T) {
	l := read(t, strings.Replace(stale(t).text(), `"image":"sandbox:v1"`, `"image":nope`, 1))
	if _, _, err := l.History("", checker.Options{}); err == nil || !strings.Contains(err.Error(), "sandboxtemplates prod/python at resourceVersion 101: spec") {
		t.Errorf("error %v", err)
	}
}

// A message that a provider cut at its limit is told, and the others are judged.
func TestCutMessage(t *testing.T) {
	c := newCast(t)
	c.serve("c1")
	var lines []string
	for i, line := range append(c.lines, c.lines[0][:200]) {
		b, err := json.Marshal(map[string]any{"id": i, "message": line})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	got, missing := judge(t, strings.Join(lines, "\n")+"\n")
	if diff := cmp.Diff([]string{"c1: Fresh"}, got); diff != "" {
		t.Errorf("verdicts (-want,+got):\n%s", diff)
	}
	want := []string{noNamespaces, "1 event is not whole and not judged: audit-0.log: line 10."}
	if diff := cmp.Diff(want, missing.Notes); diff != "" {
		t.Errorf("notes (-want,+got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	c := stale(f)
	f.Add([]byte(c.text()))
	f.Add([]byte("[" + strings.Join(c.lines, ",") + "]"))
	f.Add([]byte(`{"logEvents":[{"message":"{\"auditID\":\"1\"}"}]}`))
	f.Add([]byte(`{"records":[{"properties":{"log":"{}"}}]}`))
	for i, line := range c.lines {
		b, _ := json.Marshal(googleEntry(i, line))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New()
		if err := l.Read("x.log", strings.NewReader(string(b))); err != nil {
			if !strings.HasPrefix(err.Error(), "x.log: ") {
				t.Errorf("an error that does not name the file: %v", err)
			}
			return
		}
		if h, _, err := l.History("", checker.Options{}); err == nil {
			h.Judge()
			h.Pools()
		}
	})
}

// The scanner finds what encoding/json finds.
func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1,2,"}"]},"d":"\\\"","e":null}`))
	f.Add([]byte(` { } `))
	f.Fuzz(func(t *testing.T, b []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil || strings.Count(string(b), "{")+strings.Count(string(b), "[") >= maxDepth {
			_ = fields(b, func(_, _ []byte) error { return nil })
			return
		}
		// Keys with escapes, and those that are no UTF-8, are not looked for.
		if strings.Contains(string(b), `\`) || !utf8.Valid(b) {
			return
		}
		got := map[string]string{}
		if err := fields(b, func(key, value []byte) error { got[string(key)] = string(value); return nil }); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		for key, value := range want {
			if have, ok := got[key]; ok && have != string(value) {
				t.Errorf("%q: %q is %s, want %s", b, key, have, value)
			}
		}
		if len(got) < len(want) {
			t.Errorf("%q: %d keys, want %d", b, len(got), len(want))
		}
	})
}
