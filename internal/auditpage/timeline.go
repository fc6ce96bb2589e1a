package auditpage

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

// scale turns times into positions.
type scale struct{ from, until time.Time }

func (s scale) at(t time.Time) float64 {
	span := s.until.Sub(s.from)
	if span <= 0 {
		return 0
	}
	return max(0, min(width, width*float64(t.Sub(s.from))/float64(span)))
}

type poolName struct{ namespace, name string }

// timelines has one for each pool, those with the worst findings first.
func timelines(r *checker.Report, pools []checker.PoolHistory) []pool {
	s := scale{r.Since, r.Until}
	binds := map[poolName][]checker.Bind{}
	for _, b := range r.Binds {
		key := poolName{b.Namespace, b.Pool}
		binds[key] = append(binds[key], b)
	}
	var out []pool
	for _, p := range pools {
		key := poolName{p.Namespace, p.Pool}
		out = append(out, timeline(s, p, binds[key]))
		delete(binds, key)
	}
	// Binds of which the log does not hold the pool.
	for key, of := range binds {
		out = append(out, timeline(s, checker.PoolHistory{Namespace: key.namespace, Pool: key.name}, of))
	}
	slices.SortFunc(out, func(a, b pool) int { return cmp.Or(b.worst-a.worst, cmp.Compare(a.Title, b.Title)) })
	return out
}

func timeline(s scale, p checker.PoolHistory, binds []checker.Bind) pool {
	out := pool{Title: p.Namespace + "/" + cmp.Or(p.Pool, "<no pool>"), Strategy: p.Strategy}
	tones := map[string]int{}
	for i, b := range p.Bands {
		key := b.Revision.Template + " " + b.Revision.Digest
		if _, known := tones[key]; !known {
			tones[key] = len(tones) % bandTones
		}
		x := s.at(b.From)
		if i == 0 && x < 1 {
			x = 0
		}
		out.Bands = append(out.Bands, band{X: x, Width: max(1, s.at(b.Until)-x), Tone: tones[key], Label: label(b.Revision),
			Title: fmt.Sprintf("%s, from %s to %s", b.Revision, stamp(b.From), stamp(b.Until))})
	}
	bad := 0
	for _, b := range binds {
		out.worst = max(out.worst, severity(b.Class))
		if b.Class.Bad() {
			bad++
		}
	}
	out.Summary = plural(len(binds), "bind")
	if bad > 0 {
		out.Summary += fmt.Sprintf(", %d stale or worse", bad)
	}
	out.Marks = marks(s, binds)
	return out
}

// bandTones is how many colours of bands the page has.
const bandTones = 4

func label(r checker.Revision) string {
	if r.Digest == "" {
		return r.Template
	}
	return r.Digest
}

// lanes keep marks of different tones apart.
var lanes = map[string]int{"bad": 12, "unknown": 24, "mild": 24, "good": 36}

// marks has the worst binds one by one; the others share a mark where they would cover each other.
func marks(s scale, binds []checker.Bind) []mark {
	sorted := slices.Clone(binds)
	slices.SortStableFunc(sorted, func(a, b checker.Bind) int { return severity(b.Class) - severity(a.Class) })
	single := sorted[:min(len(sorted), maxMarks)]
	var out []mark
	for _, b := range slices.Backward(single) { // the worst is drawn last, above the others
		out = append(out, mark{X: s.at(b.SeenAt), Y: lanes[tone(b.Class)], Tone: tone(b.Class),
			Title: fmt.Sprintf("%s, %s", b.String(), stamp(b.SeenAt))})
	}
	type place struct {
		x    int
		tone string
	}
	shared := map[place]int{}
	for _, b := range sorted[len(single):] {
		shared[place{int(s.at(b.SeenAt)) / 4 * 4, tone(b.Class)}]++
	}
	for at, n := range shared {
		out = append(out, mark{X: float64(at.x), Y: lanes[at.tone], Tone: at.tone, Title: plural(n, "bind")})
	}
	return out
}
