package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
)

// Where things are on the page.
const (
	verdicts  = "h1"
	titles    = "figcaption strong"
	timelines = "figure svg"
	bands     = "figure svg rect"
	marks     = "figure svg .mark"
	findings  = "tbody tr"
)

// written is the page of two pools: in one the template changed, and a claim that came
// after that got a sandbox of the old one.
func written(t *testing.T) string {
	t.Helper()
	l := newAuditLog(t)
	calm, late := l.cast("calm"), l.cast("late")
	m1, m2 := late.birth("late-m1"), late.birth("late-m2")
	late.serve("before", m1)
	late.update("sandbox:v2")
	late.serve("stale", m2)
	late.serve("after", late.birth("late-m3"))
	calm.serve("other", calm.birth("calm-m1"))
	var out, errOut strings.Builder
	if code := app.Main([]string{"audit", "check", "-f", "-", "-o", "html"}, strings.NewReader(l.text.String()), &out, &errOut); code != 1 {
		t.Fatalf("audit check ended with %d, want 1, as something is stale:\n%s", code, errOut.String())
	}
	return out.String()
}

// mark is a bind as somebody sees it: in which band of which pool, and how it looks.
type mark struct {
	pool string
	band int
	tone string
}

// TestABrowserShowsThePage has a real browser open the page of audit check.
func TestABrowserShowsThePage(t *testing.T) {
	b := startBrowser(t)
	page := written(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			seen := b.look(t, scheme, page, verdicts, titles, timelines, bands, marks, findings)
			t.Log(seen.Browser)
			for _, fault := range faults(seen) {
				t.Error(fault)
			}
			got, colours := picture(seen)
			want := []mark{{"prod/late", 0, "mark good"}, {"prod/late", 1, "mark bad"}, {"prod/late", 1, "mark good"}, {"prod/calm", 0, "mark good"}}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(mark{})); diff != "" {
				t.Errorf("marks (-want,+got):\n%s", diff)
			}
			// Revisions of one pool can be told apart, and so can marks.
			if late := colours["prod/late"]; len(late) != 2 || late[0] == late[1] || len(colours["prod/calm"]) != 1 {
				t.Errorf("bands have the colours %v, want two in prod/late and one in prod/calm", colours)
			}
			pixels := map[string]string{}
			for _, m := range seen.Elements[marks] {
				pixels[m.Class] = m.Pixel
			}
			if pixels["mark bad"] == pixels["mark good"] {
				t.Errorf("a stale bind looks like a fresh one: %v", pixels)
			}
			if rows := seen.Elements[findings]; len(rows) != 1 || !strings.Contains(rows[0].Text, "prod/stale") {
				t.Errorf("findings are %+v, want the one of prod/stale", rows)
			}
		})
	}
}

// TestFaultsOfAPageAreSeen shows that a page with a fault is not taken for a good one.
func TestFaultsOfAPageAreSeen(t *testing.T) {
	b := startBrowser(t)
	page := written(t)
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`
	const address = "http://127.0.0.1:9/x.png"
	cases := map[string]struct {
		old, spoilt string
		want        string
	}{
		"it asks for something": {policy, `<img src="` + address + `">`, "it asks for " + address},
		"its policy is broken":  {`</body>`, `<img src="` + address + `"></body>`, "Content Security Policy"},
		"it prints":             {policy, `<script>console.error("spoilt")</script>`, `console: error: "spoilt"`},
		"it throws":             {policy, `<script>throw new Error("spoilt")</script>`, "spoilt"},
		"marks are not shown":   {`</style>`, `svg .mark { display: none } </style>`, marks + " is not shown"},
		"marks have no colour":  {`</style>`, `svg .mark { stroke-width: 0 } </style>`, marks + " is not shown"},
		"bands are covered":     {`</style>`, `figure { position: relative } figure::after { content: ""; position: absolute; inset: 0; background: red } </style>`, bands + " is not shown"},
		"it is too wide":        {`</style>`, `table { width: 3000px } .scroll { overflow: visible } </style>`, "pixels wide"},
		"no style is allowed":   {policy, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'">`, "Content Security Policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if n := strings.Count(page, tc.old); n != 1 {
				t.Fatalf("the page has %d of %s, want 1", n, tc.old)
			}
			got := faults(b.look(t, "light", strings.Replace(page, tc.old, tc.spoilt, 1), verdicts, titles, timelines, bands, marks))
			if !slices.ContainsFunc(got, func(fault string) bool { return strings.Contains(fault, tc.want) }) {
				t.Errorf("seen are %q, want %q", got, tc.want)
			}
		})
	}
}

// window is how wide the browser is, in pixels.
const window = 1280

// faults are what no page may have.
func faults(seen view) []string {
	var out []string
	for _, address := range seen.Requests {
		out = append(out, "it asks for "+address)
	}
	for _, line := range seen.Console {
		out = append(out, "console: "+line)
	}
	if seen.Width > window {
		out = append(out, fmt.Sprintf("it is %d pixels wide, in a window of %d", seen.Width, window))
	}
	for _, selector := range []string{verdicts, titles, timelines, bands, marks} {
		if len(seen.Elements[selector]) == 0 {
			out = append(out, selector+" is not there")
		}
		for _, e := range seen.Elements[selector] {
			if !shown(selector, e) {
				out = append(out, fmt.Sprintf("%s is not shown: %+v", selector, e))
			}
		}
	}
	return out
}

// shown reports whether a person sees an element: it has a size, and the screen has its
// colour where it is. A mark is a line without length, and has its width from its stroke.
func shown(selector string, e element) bool {
	switch selector {
	case marks:
		return e.Pixel == e.Stroke
	case bands:
		return e.Width >= 1 && e.Height >= 1 && e.Pixel == e.Fill
	}
	return e.Width >= 1 && e.Height >= 1
}

// picture is what the timelines say: the marks of each pool from left to right, and the
// colours of its bands.
func picture(seen view) (found []mark, colours map[string][]string) {
	colours = map[string][]string{}
	for i, svg := range seen.Elements[timelines] {
		pool := ""
		if i < len(seen.Elements[titles]) {
			pool = seen.Elements[titles][i].Text
		}
		of := func(selector string) []element {
			inside := slices.DeleteFunc(slices.Clone(seen.Elements[selector]), func(e element) bool { return e.Y < svg.Y || e.Y > svg.Y+svg.Height })
			slices.SortStableFunc(inside, func(a, b element) int { return int(math.Copysign(1, a.X-b.X)) })
			return inside
		}
		for _, band := range of(bands) {
			colours[pool] = append(colours[pool], band.Pixel)
		}
		for _, m := range of(marks) {
			in := slices.IndexFunc(of(bands), func(b element) bool { return b.X <= m.X && m.X < b.X+b.Width })
			found = append(found, mark{pool, in, m.Class})
		}
	}
	return found, colours
}
