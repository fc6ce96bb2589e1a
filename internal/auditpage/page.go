// Package auditpage writes a judgement as one HTML page that needs no network and no script: a timeline for each pool, with
// the revisions it asked for as bands and binds as marks, and the findings.
package auditpage

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Parse(source))

const (
	// width of a timeline in its own units.
	width = 1000
	// maxMarks is how many binds a timeline shows one by one; of fresh ones more are shown as one mark with their number.
	maxMarks = 1000
	// maxFindings is how many rows the table has. Everything is in -o json.
	maxFindings = 2000
	// maxPools is how many timelines there are, those with the worst findings first.
	maxPools = 200
)

type view struct {
	Since, Until string
	Bad          int
	Verdict      string
	Missing      []string
	Counts       []count
	Pools        []pool
	MorePools    int
	Findings     []row
	MoreFindings int
	Gaps         []string
}

type count struct {
	Class string
	Tone  string
	N     int
}

type pool struct {
	Title, Strategy string
	Summary         string
	Bands           []band
	Marks           []mark
	worst           int
}

type band struct {
	X, Width float64
	Tone     int
	Label    string
	Title    string
}

type mark struct {
	X     float64
	Y     int
	Tone  string
	Title string
}

type row struct {
	Time, Class, Tone, Namespace, Pool, Claim, Sandbox, How string
	Messages                                                []string
}

// Write writes the page.
func Write(out io.Writer, r *checker.Report, pools []checker.PoolHistory) error {
	if err := page.Execute(out, viewOf(r, pools)); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// tone is how a class looks: good, mild, unknown or bad.
func tone(c checker.Class) string {
	switch {
	case c.Bad():
		return "bad"
	case c == checker.Fresh:
		return "good"
	case c == checker.Unjudged:
		return "unknown"
	}
	return "mild"
}

func viewOf(r *checker.Report, pools []checker.PoolHistory) view {
	v := view{Since: stamp(r.Since), Until: stamp(r.Until), Bad: r.Bad(), Missing: r.Missing}
	sums := map[checker.Class]int{}
	for _, s := range r.Namespaces {
		for c, n := range s.Classes {
			sums[c] += n
		}
	}
	for _, c := range checker.Classes() {
		if sums[c] > 0 {
			v.Counts = append(v.Counts, count{string(c), tone(c), sums[c]})
		}
	}
	v.Verdict = verdict(v.Bad, sums[checker.Unjudged], len(r.Missing))
	for _, g := range r.EventGaps {
		v.Gaps = append(v.Gaps, fmt.Sprintf("Events of %s between resourceVersion %s and %s are lost.", g.Resource, g.After, g.Until))
	}
	v.Findings, v.MoreFindings = rows(r.Findings)
	v.Pools = timelines(r, pools)
	if len(v.Pools) > maxPools {
		v.Pools, v.MorePools = v.Pools[:maxPools], len(v.Pools)-maxPools
	}
	return v
}

func verdict(bad, unjudged, missing int) string {
	switch {
	case bad > 0:
		return plural(bad, "finding") + ", stale or worse"
	case unjudged > 0:
		return "Nothing stale or worse among what was judged; " + plural(unjudged, "bind") + " not judged"
	case missing > 0:
		return "Nothing stale or worse among what was judged; the log does not hold everything"
	}
	return "Nothing stale or worse"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func rows(findings []checker.Bind) (out []row, more int) {
	worst := slices.Clone(findings)
	slices.SortStableFunc(worst, func(a, b checker.Bind) int { return severity(b.Class) - severity(a.Class) })
	if len(worst) > maxFindings {
		worst, more = worst[:maxFindings], len(worst)-maxFindings
	}
	for _, b := range worst {
		one := row{Time: b.SeenAt.UTC().Format("2006-01-02 15:04:05.000"), Class: string(b.Class), Tone: tone(b.Class), Namespace: b.Namespace,
			Pool: b.Pool, Claim: b.Claim.Name, Sandbox: b.Sandbox.Name, How: how(b)}
		for _, f := range b.Findings {
			one.Messages = append(one.Messages, f.Message)
		}
		out = append(out, one)
	}
	return out, more
}

func severity(c checker.Class) int { return slices.Index(checker.Classes(), c) }

func how(b checker.Bind) string {
	if b.Warm {
		return "warm"
	}
	return "cold"
}
