package auditlog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

// coverage counts what a log holds of what the judgement takes.
type coverage struct {
	events, others int
	since, until   time.Time
	// complete counts events of stage ResponseComplete about what is judged, early those of other stages.
	complete, early int
	// whole counts writes with their results, lost those without, by why.
	whole map[*checker.Kind]int
	lost  map[*checker.Kind]map[string]int
	// cut is how many events are not whole, and cutIn where the first of them stand.
	cut   int
	cutIn []string
}

func newCoverage() coverage {
	return coverage{whole: map[*checker.Kind]int{}, lost: map[*checker.Kind]map[string]int{}}
}

// count reports whether the event tells the end of a request.
func (c *coverage) count(e *event) bool {
	if !e.isOneOfUs || e.stage == "" {
		c.others++
		return false
	}
	c.events++
	if at := e.received; !at.IsZero() && (c.since.IsZero() || at.Before(c.since)) {
		c.since = at
	}
	if c.until.Before(e.done) {
		c.until = e.done
	}
	if e.stage != stageComplete {
		if e.kind != nil && e.verb != "watch" {
			c.early++
		}
		return false
	}
	if e.kind != nil {
		c.complete++
	}
	return true
}

func (c *coverage) judged(k *checker.Kind) { c.whole[k]++ }

// has reports whether there are writes to a platform's Sandboxes or claims, with or without what was stored.
func (c *coverage) has(platform string) bool {
	for _, k := range kinds {
		ofUse := k.Resource == checker.Sandboxes || k.Resource == checker.Claims
		if k.Platform == platform && ofUse && c.whole[k]+len(c.lost[k]) > 0 {
			return true
		}
	}
	return false
}

// kindOf is what a platform calls a resource.
func kindOf(platform string, r checker.Resource) *checker.Kind {
	for _, k := range kinds {
		if k.Resource == r && (k.Platform == platform || k.Platform == "") {
			return k
		}
	}
	return nil
}

func (c *coverage) lose(e *event) {
	why := "level " + string(e.level)
	switch {
	case !slices.Contains([]level{levelMetadata, levelRequest, levelResponse}, e.level):
		why = "no level that is known"
	case e.truncated:
		why = "cut by the API server or the provider"
	case e.level == levelResponse:
		why = "level RequestResponse, but without the object"
	}
	if c.lost[e.kind] == nil {
		c.lost[e.kind] = map[string]int{}
	}
	c.lost[e.kind][why]++
}

// Missing says what the log does not hold, and what that means for the verdict, the worst first. Judgeable is false where
// nothing can be judged at all.
type Missing struct {
	Judgeable bool
	Notes     []string
}

func (c *coverage) missing(platform string) Missing {
	m := Missing{Judgeable: true}
	note := func(format string, args ...any) { m.Notes = append(m.Notes, fmt.Sprintf(format, args...)) }
	if c.events == 0 {
		m.Judgeable = false
		note("No line is an event of audit.k8s.io/v1, so nothing is judged.")
		return m
	}
	if c.complete == 0 && c.early > 0 {
		m.Judgeable = false
		note("Stage ResponseComplete is omitted, and only that stage says what was stored. Remove it from omitStages of the audit policy. Nothing is judged.")
	}
	for _, r := range append(checker.Resources(), checker.Namespaces) {
		k := kindOf(platform, r)
		whole, lost := c.whole[k], 0
		var why []string
		for _, cause := range slices.Sorted(maps.Keys(c.lost[k])) {
			lost += c.lost[k][cause]
			why = append(why, fmt.Sprintf("%d: %s", c.lost[k][cause], cause))
		}
		switch {
		case lost > 0 && r != checker.Namespaces:
			note("%s of %s %s without what was stored (%s): this needs level RequestResponse. %s", plural(lost, "write"), k.Plural,
				be(lost), strings.Join(why, "; "), consequence(k))
		case whole == 0:
			note("No write to %s is in the log. %s", k.Plural, consequence(k))
		}
		if whole == 0 && (r == checker.Sandboxes || r == checker.Claims && (lost > 0 || platform != checker.Kruise)) {
			m.Judgeable = false
		}
	}
	m.Notes = append(m.Notes, c.unread()...)
	return m
}

// unread says what of the log is no whole event.
func (c *coverage) unread() (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if c.cut > 0 {
		where := strings.Join(c.cutIn, ", ")
		if c.cut > len(c.cutIn) {
			where += " …"
		}
		note("%s: %s.", plural(c.cut, "event")+" "+be(c.cut)+" not whole and not judged", where)
	}
	if c.others > 0 {
		note("%s not an audit event of Kubernetes and %s skipped.", plural(c.others, "line")+" "+be(c.others), was(c.others))
	}
	return notes
}

// consequence says what it means that writes to a resource are not known.
func consequence(k *checker.Kind) string {
	if k.Platform == checker.Kruise {
		switch k.Resource {
		case checker.Templates:
			return "Binds of SandboxSets that refer to one are not judged."
		case checker.Pools:
			return "Binds are not judged where the SandboxSet's content is not known."
		case checker.Claims:
			return "Binds for SandboxClaims are not judged; those for users of E2B, who have none, are."
		}
	}
	switch k.Resource {
	case checker.Templates:
		return "Binds are not judged where the template's content is not known."
	case checker.Pools:
		return "Binds are not judged where it is not known which template a pool referred to."
	case checker.Claims:
		return "Binds whose claim is not known are not judged."
	case checker.Sandboxes:
		return "Binds among them are not seen, so the absence of findings proves nothing."
	case checker.Pods:
		return "Whether a sandbox's Pod lived when it was bound is not judged."
	}
	return "Modes and floors that follow from labels of namespaces are not known."
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func be(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// cutAt notes an event that is not whole.
func (c *coverage) cutAt(file string, line int) {
	const most = 3
	if c.cut++; c.cut <= most {
		c.cutIn = append(c.cutIn, fmt.Sprintf("%s: line %d", file, line))
	}
}
