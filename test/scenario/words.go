package scenario

import (
	"fmt"
	"strings"

	"github.com/freshbind/freshbind/internal/checker"
)

// Besides says in words what a namespace's binds were besides fresh and stale;
// "" when nothing.
func Besides(s checker.Summary) string {
	var parts []string
	for _, part := range []struct {
		class checker.Class
		words string
	}{
		{checker.Duplicate, "gave a claim a second sandbox, or took one from another claim"},
		{checker.DeadMember, "took a dead member"},
		{checker.ForeignMember, "took a member of another pool"},
		{checker.UsedMember, "took a used member"},
		{checker.OwnerMismatch, "wrote owners that no bind may"},
		{checker.WrongClaim, "served a claim that was gone or had chosen another sandbox"},
		{checker.NotYet, "came before the Pod or the template"},
		{checker.Raced, "raced with an update"},
		{checker.Tolerated, "stale by the pool's own strategy"},
		{checker.Unjudged, "could not be judged"},
	} {
		if n := s.Classes[part.class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", Plural(n, "bind"), part.words))
		}
	}
	return strings.Join(parts, "; ")
}

// Sound reports whether every bind of a namespace is known to be good, except
// for stale ones.
func Sound(s checker.Summary) bool {
	return s.Bad() == s.Classes[checker.Stale] && s.Classes[checker.Unjudged] == 0
}

// Plural is "1 bind", "2 binds".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
