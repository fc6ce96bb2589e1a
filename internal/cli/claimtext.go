package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Text tells the story.
func (s *ClaimStory) Text(colour bool) string {
	head := fmt.Sprintf("Claim %s (uid %s, created %s) holds ", s.Name, s.UID, clock(s.Created.Time))
	finding := Cell{"no sandbox", Busy}
	var b strings.Builder
	if s.Finding == FindNothing {
		b.WriteString(".\n")
	} else {
		head += fmt.Sprintf("sandbox %s: ", s.Sandbox)
		finding = Cell{strings.ToUpper(string(s.Finding)), s.Finding.tone()}
		fmt.Fprintf(&b, ", %s%s\n", s.launched(), s.readyText())
		s.content(&b)
	}
	if s.Waits != "" {
		fmt.Fprintf(&b, "  pool      %s\n", OneLine(s.Waits))
	}
	s.refused(&b)
	switch {
	case s.Status != "" && len(s.Refusals) > 0:
		fmt.Fprintf(&b, "The claim's own status says %q: agent-sandbox says this about a refused bind as well.\n", s.Status)
	case s.Status != "":
		fmt.Fprintf(&b, "The claim's own status says %q.\n", s.Status)
	}
	return Escape(head) + Paint(finding, colour) + Escape(b.String())
}

func (f Finding) tone() Tone {
	switch f {
	case FindFresh:
		return Good
	case FindStale:
		return Bad
	}
	return Busy
}

func (s *ClaimStory) launched() string {
	if s.Launch == "cold" {
		return "started cold"
	}
	return "bound warm"
}

func (s *ClaimStory) readyText() string {
	if s.Ready.IsZero() {
		return ", not ready yet"
	}
	return fmt.Sprintf(", ready %s (+%d s)", clock(s.Ready.Time), int(s.Ready.Sub(s.Created.Time).Seconds()))
}

func (s *ClaimStory) content(b *strings.Builder) {
	switch s.Finding {
	case FindUnknown:
		fmt.Fprintf(b, "  runs      %s, which equals no recorded revision of template %s\n", Short(s.Runs), s.Template)
	default:
		fmt.Fprintf(b, "  runs      template %s %s, equal in content\n", s.Template, title(s.numbers[s.Runs], s.Runs))
	}
	if s.PodRuns != "" {
		fmt.Fprintf(b, "  but       its pod was built from %s\n", title(s.numbers[s.PodRuns], s.PodRuns))
	}
	if s.RepairedFrom != "" {
		fmt.Fprintf(b, "  repaired  rendered from %s by a late cache, and rewritten when it was created\n", OneLine(title(s.numbers[s.RepairedFrom], s.RepairedFrom)))
	}
	switch s.AtCreation {
	case "":
		fmt.Fprintf(b, "  in force  %s now; what was in force when the claim was created is not recorded\n", title(s.numbers[s.InForce], s.InForce))
	case s.InForce:
		fmt.Fprintf(b, "  in force  %s %s, and now\n", title(s.numbers[s.InForce], s.InForce), s.when())
	default:
		fmt.Fprintf(b, "  in force  %s %s; now %s\n", title(s.numbers[s.AtCreation], s.AtCreation), s.when(), title(s.numbers[s.InForce], s.InForce))
	}
}

func (s *ClaimStory) when() string {
	if s.Sure {
		return "when the claim was created"
	}
	return "probably when the claim was created (times are kept to the second)"
}

func (s *ClaimStory) refused(b *strings.Builder) {
	if len(s.Refusals) == 0 {
		return
	}
	head := "Refused"
	if !slices.ContainsFunc(s.Refusals, func(r Refusal) bool { return !strings.HasPrefix(r.Note, wouldRefuse) }) {
		head = "Not refused, in mode audit"
	}
	fmt.Fprintf(b, "%s (from events, which the API server keeps for an hour):\n", head)
	table := Table[Refusal]{NoHeaders: true, Columns: []Column[Refusal]{
		Text("", func(r Refusal) string { return "  " + r.Time.Local().Format("15:04:05.000") }),
		Text("", func(r Refusal) string { return orDash(r.Sandbox) }),
		Text("", func(r Refusal) string { return r.Reason }),
		Text("", func(r Refusal) string {
			if r.Count > 1 {
				return fmt.Sprintf("%s (%d times)", r.Note, r.Count)
			}
			return r.Note
		}),
	}}
	_ = table.Write(b, s.Refusals) // a strings.Builder takes everything
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clock is a time of today, or a date too.
func clock(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	if now := time.Now(); now.Sub(t) < 12*time.Hour {
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}
