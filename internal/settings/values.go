package settings

import (
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// maxQuoted bounds what a refusal repeats of a value, in characters.
const maxQuoted = 255

// check says what is wrong with the value of an input, nil for nothing.
type check func(at *field.Path, value string) *field.Error

// checks has one entry for each input.
var checks = map[string]check{
	EnforcementKey:      oneOf(string(Audit), string(Enforce)),
	StrategyKey:         oneOf(string(freshness.Recreate), string(freshness.RollingUpdate), string(freshness.OnReplenish)),
	MaxUnavailableKey:   checkMaxUnavailable,
	MinReadySecondsKey:  checkSeconds,
	ProgressDeadlineKey: checkDuration,
	PausedKey:           oneOf("true", "false"),
	RestartedAtKey:      checkTime,
	InjectedPathsKey:    checkPaths,
	ClaimsKey:           oneOf(byName),
	RepairKey:           oneOf("true", "false"),
}

// Inputs are the keys of what people say, sorted.
func Inputs() []string { return slices.Sorted(maps.Keys(checks)) }

// Check says what is wrong with the value of a key; nil for nothing, and for a key
// that is no input. An empty value counts as not set.
func Check(at *field.Path, key, value string) *field.Error {
	check, known := checks[key]
	if !known || value == "" {
		return nil
	}
	return check(at, value)
}

func oneOf(accepted ...string) check {
	return func(at *field.Path, value string) *field.Error {
		if slices.Contains(accepted, value) {
			return nil
		}
		return field.NotSupported(at, value, accepted)
	}
}

// checkMaxUnavailable accepts what Deployments do without a surge: 0 would stop
// every rollout.
func checkMaxUnavailable(at *field.Path, value string) *field.Error {
	if n, percent, ok := parseCount(value); !ok || n < 1 || percent && n > 100 {
		return field.Invalid(at, value, "must be a number of members, 1 or more, or a percentage from 1% to 100%")
	}
	return nil
}

func checkSeconds(at *field.Path, value string) *field.Error {
	if _, ok := parseSeconds(value); !ok {
		return field.Invalid(at, value, "must be a whole number of seconds, 0 or more")
	}
	return nil
}

func checkDuration(at *field.Path, value string) *field.Error {
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		return field.Invalid(at, value, "must be a duration above 0, such as 90s, 10m or 1h30m")
	}
	return nil
}

func checkTime(at *field.Path, value string) *field.Error {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return field.Invalid(at, value, "must be a time as in RFC 3339, such as 2026-01-31T23:59:00Z")
	}
	return nil
}

func checkPaths(at *field.Path, value string) *field.Error {
	_, err := revision.ParseList(value)
	if err == nil {
		return nil
	}
	if utf8.RuneCountInString(value) > maxQuoted {
		value = string([]rune(value)[:maxQuoted-1]) + "…"
	}
	return field.Invalid(at, value, err.Error())
}
