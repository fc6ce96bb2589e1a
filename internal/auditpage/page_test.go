package auditpage

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/freshbind/freshbind/internal/checker"
)

var begin = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func bind(claim string, class checker.Class, minute int) checker.Bind {
	b := checker.Bind{Namespace: "prod", Pool: "python", Claim: checker.Ref{Name: claim}, Sandbox: checker.Ref{Name: "python-m1"}, Warm: true,
		Class: class, SeenAt: begin.Add(time.Duration(minute) * time.Minute)}
	if class != checker.Fresh {
		b.Findings = []checker.Finding{{Class: class, Message: "runs <script>alert(1)</script> & more"}}
	}
	return b
}

func report(binds ...checker.Bind) *checker.Report {
	r := &checker.Report{Since: begin, Until: begin.Add(time.Hour), Binds: binds}
	s := checker.Summary{Namespace: "prod", Classes: map[checker.Class]int{}}
	for _, b := range binds {
		s.Classes[b.Class]++
		if b.Class != checker.Fresh {
			r.Findings = append(r.Findings, b)
		}
	}
	r.Namespaces = []checker.Summary{s}
	return r
}

var pools = []checker.PoolHistory{{Namespace: "prod", Pool: "python", Strategy: "Recreate", Bands: []checker.Band{
	{From: begin, Until: begin.Add(30 * time.Minute), Revision: checker.Revision{Template: "python", RV: "1", Digest: "aaa"}},
	{From: begin.Add(30 * time.Minute), Until: begin.Add(time.Hour), Revision: checker.Revision{Template: "python", RV: "2", Digest: "bbb"}},
}}}

func write(t *testing.T, r *checker.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r, pools); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	got := write(t, report(bind("c1", checker.Stale, 45), bind("<b>c2", checker.Fresh, 15)))
	for _, want := range []string{
		"1 finding, stale or worse", "prod/python", "2 binds, 1 stale or worse",
		`<rect class="b0" x="0.00" y="0" width="500.00"`, `<rect class="b1" x="500.00" y="0" width="500.00"`,
		`<line class="mark bad" x1="750.00"`, `<line class="mark good" x1="250.00"`, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more", "&lt;b&gt;c2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	// Nothing is loaded, and nothing runs.
	if bad := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|src=|href=|@import|url\(|\bon[a-z]+=`).FindAllString(got, -1); len(bad) > 0 {
		t.Errorf("the page has %q", bad)
	}
	if _, err := html.Parse(strings.NewReader(got)); err != nil {
		t.Error(err)
	}
}

func TestVerdict(t *testing.T) {
	cases := map[string]struct {
		report *checker.Report
		want   string
	}{
		"two":        {report(bind("a", checker.Stale, 1), bind("b", checker.Killed, 2)), "2 findings, stale or worse"},
		"none":       {report(bind("a", checker.Fresh, 1)), "Nothing stale or worse"},
		"not judged": {report(bind("a", checker.Unjudged, 1)), "Nothing stale or worse among what was judged; 1 bind not judged"},
		"missing":    {&checker.Report{Missing: []string{"No write to pods is in the log."}}, "Nothing stale or worse among what was judged; the log does not hold everything"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := write(t, tc.report); !strings.Contains(got, ">"+tc.want+"</h1>") {
				t.Errorf("the page does not say %q", tc.want)
			}
		})
	}
}

// However many binds there are, the page stays of a size that a browser opens, and shows the worst.
func TestManyBinds(t *testing.T) {
	binds := []checker.Bind{bind("worst", checker.UsedMember, 59)}
	for i := range 50_000 {
		binds = append(binds, bind(fmt.Sprintf("c%d", i), checker.Fresh, i%60))
	}
	got := write(t, report(binds...))
	if len(got) > 2<<20 {
		t.Errorf("the page has %d bytes", len(got))
	}
	if !strings.Contains(got, "USEDMEMBER") || !strings.Contains(got, "50001 binds, 1 stale or worse") {
		t.Error("the worst bind is not on the page")
	}
}
