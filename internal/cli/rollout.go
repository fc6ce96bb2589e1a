package cli

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// The exit codes of all commands, the first four as kubectl's users know them.
const (
	ExitComplete = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitTimeout  = 3
	ExitPaused   = 4
)

// Outcome is what there is to say of a pool's rollout.
type Outcome struct {
	// Done: waiting any longer changes nothing. Code is then the exit code.
	Done bool
	Code int
	Text string
	// Key changes when there is news; Text alone counts seconds.
	Key string
}

// Trouble is why a member does not become ready.
type Trouble struct {
	Member string
	For    time.Duration
	Why    string
}

// Outcome says how the rollout of a pool goes. trouble is of its newest member,
// nil when there is none worth telling; program is how to call this program.
func (p *Pool) Outcome(trouble *Trouble, program string) Outcome {
	upToDate := fmt.Sprintf("%d of %d up to date", p.Updated, p.Replicas)
	done := func(code int, format string, args ...any) Outcome {
		text := fmt.Sprintf(format, args...)
		return Outcome{Done: true, Code: code, Text: text, Key: text}
	}
	switch {
	case p.State == Unreadable:
		return done(ExitFailed, "pool %q cannot be judged: %s", p.Name, p.Message)
	case p.State == TemplateGone:
		text := fmt.Sprintf("Waiting for rollout of pool %q: %s...", p.Name, p.Message)
		return Outcome{Text: text, Key: text}
	// Claims that take members do not undo what the controller has seen complete.
	case p.left() == 0 && (p.UpdatedReady >= p.Replicas || p.State == Complete):
		return done(ExitComplete, "pool %q successfully rolled out: %s, %s", p.Name, upToDate, title(p.Number, p.Revision))
	case p.State == Suspended:
		return done(ExitComplete, "pool %q is rolled out as far as can be told: %s, %d equal no known revision: %s",
			p.Name, upToDate, p.Unknown, p.Message)
	case p.left() > 0 && p.Object.GetAnnotations()[settings.PausedKey] == "true":
		return done(ExitPaused, "pool %q is paused: %s. Resume: %s rollout resume pool/%s", p.Name, upToDate, program, p.Name)
	case p.State == Failed:
		return done(ExitFailed, "pool %q exceeded its progress deadline (%s): %s; %s. Undo: %s rollout undo %s",
			p.Name, duration.HumanDuration(p.Deadline), upToDate, p.older(), program, p.undone())
	case p.left() > 0 && p.stays():
		return done(ExitFailed, "pool %q will not complete by itself: %s; %d members are not: %s", p.Name, upToDate, p.left(), p.StalePolicy.Text(p.left()))
	}
	return p.waiting(upToDate, trouble)
}

// older says what a rollout that failed leaves to claims, as the controller does.
func (p *Pool) older() string {
	if freshness.ServesStale(p.Strategy, p.Admit == string(freshness.AdmitAny)) {
		return fmt.Sprintf("%d older members keep serving", p.left())
	}
	return fmt.Sprintf("claims do not get the %d older members", p.left())
}

// undone is what to undo. A pool that is its own template, of another kind than those that
// pools refer to, can have the name of one of them.
func (p *Pool) undone() string {
	if p.TemplateKind != "" {
		return "pool/" + p.Name
	}
	return "template/" + p.Template
}

// stays: nothing replaces stale members, they go when claims take them.
func (p *Pool) stays() bool {
	return p.StalePolicy == advice.Kept || p.StalePolicy == advice.KeptInAudit || p.StalePolicy == advice.Avoided
}

func (p *Pool) waiting(upToDate string, trouble *Trouble) Outcome {
	if trouble != nil {
		head := fmt.Sprintf("Waiting for rollout of pool %q: %s: newest member %s is not ready", p.Name, upToDate, trouble.Member)
		return Outcome{
			Text: fmt.Sprintf("%s for %s: %s...", head, duration.HumanDuration(trouble.For), trouble.Why),
			Key:  head + trouble.Why,
		}
	}
	text := fmt.Sprintf("Waiting for rollout of pool %q to %s: %s, %d claimable", p.Name, title(p.Number, p.Revision), upToDate, p.Claimable)
	if n := max(0, p.Replicas-p.Ready); n > 0 {
		text += fmt.Sprintf(", %d being replaced", n)
	}
	if p.StalePolicy == advice.Replaced {
		text += fmt.Sprintf(" (max-unavailable %s)", p.MaxUnavailable)
	}
	if p.State == Pending {
		text += "; the controller has not reported on it yet"
	}
	return Outcome{Text: text + "...", Key: text}
}

// Newest returns the newest member that should be ready and is not; nil when
// there is none, or the newest of all is ready.
func (p *Pool) Newest() *Member {
	for i := len(p.Members) - 1; i >= 0; i-- {
		switch m := &p.Members[i]; {
		case m.Leaving:
		case m.Ready:
			return nil
		default:
			return m
		}
	}
	return nil
}
