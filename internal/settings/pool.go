package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

const (
	// DefaultMaxUnavailable is that of Deployments.
	DefaultMaxUnavailable = "25%"
	// DefaultDeadline is that of Deployments.
	DefaultDeadline = 10 * time.Minute
	// byName is the only value of ClaimsKey.
	byName = "by-name"
)

// Pool reads the annotations of a pool. What cannot be parsed counts as not said,
// unless a method says otherwise.
type Pool map[string]string

// Enforces reports whether the pool asks for mode enforce.
func (p Pool) Enforces() bool { return Mode(p[EnforcementKey]) == Enforce }

// Paused reports whether rollouts are to stop.
func (p Pool) Paused() bool { return p[PausedKey] == "true" }

// ByName reports whether only claims that name the pool get its members. What cannot
// be parsed counts as the only value there is.
func (p Pool) ByName() bool { return p[ClaimsKey] != "" }

// RefusesRepair reports whether what is stale when it is created is to be refused.
func (p Pool) RefusesRepair() bool { return p[RepairKey] == "false" }

// AdmitsAny reports whether Freshbind gives stale members of the pool to claims, while
// it rolls.
func (p Pool) AdmitsAny() bool { return p[AdmitKey] == string(freshness.AdmitAny) }

// Restarted is when the pool asked for a restart; zero when it did not, or when that time
// has not come: members would be stale as soon as they are born. Nor does what cannot be
// parsed make any stale.
func (p Pool) Restarted(now time.Time) time.Time {
	if at := p.restart(); !at.After(now) {
		return at
	}
	return time.Time{}
}

// RestartsIn is how long it takes until the pool asks for a restart; 0 when it asks for one
// already, or for none.
func (p Pool) RestartsIn(now time.Time) time.Duration { return max(0, p.restart().Sub(now)) }

func (p Pool) restart() time.Time {
	at, err := time.Parse(time.RFC3339, p[RestartedAtKey])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Deadline is how long a rollout may go without progress.
func (p Pool) Deadline() time.Duration {
	if d, err := time.ParseDuration(p[ProgressDeadlineKey]); err == nil && d > 0 {
		return d
	}
	return DefaultDeadline
}

// MinReady is how long a member has to be ready to count as available.
func (p Pool) MinReady() time.Duration {
	n, ok := parseSeconds(p[MinReadySecondsKey])
	if !ok {
		return 0
	}
	return time.Duration(n) * time.Second
}

// MaxUnavailable resolves a number of members or a percentage of replicas as
// Deployments do without a surge: rounded down, and never 0, which would stop
// every rollout.
func (p Pool) MaxUnavailable(replicas int) int {
	n, ok := resolve(p[MaxUnavailableKey], replicas)
	if !ok {
		n, _ = resolve(DefaultMaxUnavailable, replicas)
	}
	return max(1, n)
}

// InjectedPaths are the fields that the pool's owner vouches for. A value that cannot
// be parsed, or is too long, allows nothing.
func (p Pool) InjectedPaths() revision.PathSet {
	set, err := revision.ParseList(p[InjectedPathsKey])
	if err != nil {
		return revision.PathSet{}
	}
	return set
}

func resolve(value string, replicas int) (n int, ok bool) {
	n, percent, ok := parseCount(value)
	if percent {
		n = replicas * n / 100
	}
	return n, ok
}

// parseCount reads a number, or a percentage.
func parseCount(value string) (n int, percent, ok bool) {
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(digits)
	return n, percent, err == nil && n >= 0
}

func parseSeconds(value string) (n int64, ok bool) {
	n, err := strconv.ParseInt(value, 10, 32)
	return n, err == nil && n >= 0
}
