package freshness

// Class is what an idle member is beside the template in force.
type Class string

const (
	// Current equals what the platform renders from the template in force.
	Current Class = "Current"
	// Stale equals an older revision of that template, or was created before the
	// pool asked for a restart.
	Stale Class = "Stale"
	// Unknown equals no revision that is known.
	Unknown Class = "Unknown"
	// Former is of another template than the pool refers to now. Nobody can be
	// given it until the pool refers to that one again.
	Former Class = "Former"
	// Unusable can never be bound, whatever becomes of its template: it had a claim
	// before, or names a Pod that it has not made.
	Unusable Class = "Unusable"
	// Unclassified says that what it would be compared with is not there.
	Unclassified Class = "Unclassified"
)

// ClassOf reduces the verdict on a Stored member. Whether the pool tolerates
// what it is does not matter here.
func ClassOf(v Verdict) Class {
	switch {
	case v.Reason == StaleRevision:
		return Stale
	case v.Reason == UnknownRevision:
		return Unknown
	case v.Reason == TemplateMismatch:
		return Former
	case v.Allowed:
		return Current
	case v.Reason.Fault() == FaultMember && v.Reason != PoolGone:
		return Unusable
	}
	return Unclassified
}
