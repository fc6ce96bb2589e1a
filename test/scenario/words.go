package scenario

import (
	"fmt"
	"strings"

	"github.com/freshbind/freshbind/internal/audit"
)

// Besides says in words what a namespace's binds were besides fresh and stale;
// "" when nothing.
func Besides(s audit.Summary) string {
	var parts []string
	for _, part := range []struct {
		class audit.Class
		words string
	}{
		{audit.Duplicate, "gave a claim a second sandbox, or took one from another claim"},
		{audit.DeadMember, "took a dead member"},
		{audit.ForeignMember, "took a member of another pool"},
		{audit.UsedMember, "took a used member"},
		{audit.OwnerMismatch, "wrote owners that no bind may"},
		{audit.WrongClaim, "served a claim that was gone or had chosen another sandbox"},
		{audit.NotYet, "came before the Pod or the template"},
		{audit.Raced, "raced with an update"},
		{audit.Tolerated, "stale by the pool's own strategy"},
		{audit.Unjudged, "could not be judged"},
	} {
		if n := s.Classes[part.class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Plural(n, "bind"), part.words))
		}
	}
	return strings.Join(parts, "; ")
}

// Sound reports whether every bind of a namespace is known to be good, except
// for stale ones.
func Sound(s audit.Summary) bool {
	return s.Bad() == s.Classes[audit.Stale] && s.Classes[audit.Unjudged] == 0
}

// Plural is "1 bind", "2 binds".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
