package platform

import "time"

// ExpiryMargin is how much earlier than by our clock the time of a claim or member is
// taken to be up: refusing the delete of one whose time is would keep it alive.
const ExpiryMargin = time.Minute

// Past reports whether an RFC 3339 time has come; "" and what cannot be parsed never
// comes.
func Past(at string, now time.Time) bool {
	t, err := time.Parse(time.RFC3339, at)
	return err == nil && !t.After(now.Add(ExpiryMargin))
}
