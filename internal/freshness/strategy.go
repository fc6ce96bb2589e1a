package freshness

// Strategy is what a pool asks for when its template changes.
type Strategy string

const (
	// Recreate deletes stale members and refuses stale binds.
	Recreate Strategy = "Recreate"
	// RollingUpdate replaces stale members step by step; stale binds are as
	// the live pool says.
	RollingUpdate Strategy = "RollingUpdate"
	// OnReplenish leaves stale members alone and tolerates stale binds.
	OnReplenish Strategy = "OnReplenish"
	// PlatformOwned is a strategy in the pool's spec that is not known here:
	// staleness is left to the platform.
	PlatformOwned Strategy = "PlatformOwned"
)
