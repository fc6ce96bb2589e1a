package advice

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
)

// Prefix is that of all keys of ours, inputs and outputs.
const Prefix = "freshbind.dev/"

// The inputs: annotations of pools and templates, and EnforcementKey as a label
// of namespaces too.
const (
	EnforcementKey      = Prefix + "enforcement"
	StrategyKey         = Prefix + "rollout-strategy"
	MaxUnavailableKey   = Prefix + "max-unavailable"
	MinReadySecondsKey  = Prefix + "min-ready-seconds"
	ProgressDeadlineKey = Prefix + "progress-deadline"
	PausedKey           = Prefix + "paused"
	RestartedAtKey      = Prefix + "restarted-at"
	InjectedPathsKey    = Prefix + "injected-paths"
	ClaimsKey           = Prefix + "claims"
	RepairKey           = Prefix + "repair"
)

// Inputs are what one object says to Freshbind.
type Inputs struct {
	// Labels are read on namespaces only.
	Labels      map[string]string
	Annotations map[string]string
	// Strategy is a pool's spec.updateStrategy.type.
	Strategy string
	// PodLabels and PodAnnotations are a template's spec.podTemplate.metadata.
	PodLabels, PodAnnotations map[string]string
}

// check says what is wrong with the value of an input, nil for nothing.
type check func(at *field.Path, value string) *field.Error

// checks has one entry for each input. An empty value counts as not set.
var checks = map[string]check{
	EnforcementKey:      oneOf("audit", "enforce"),
	StrategyKey:         oneOf(string(freshness.Recreate), string(freshness.RollingUpdate), string(freshness.OnReplenish)),
	MaxUnavailableKey:   checkMaxUnavailable,
	MinReadySecondsKey:  checkSeconds,
	ProgressDeadlineKey: checkDuration,
	PausedKey:           oneOf("true", "false"),
	RestartedAtKey:      checkTime,
	InjectedPathsKey:    checkPaths,
	ClaimsKey:           oneOf("by-name"),
	RepairKey:           oneOf("true", "false"),
}

// Refusals lists what cannot be accepted in after and is not in before already:
// a value that was accepted once never locks its object.
func Refusals(before, after Inputs) field.ErrorList {
	metadata := field.NewPath("metadata")
	var errs field.ErrorList
	if value := after.Labels[EnforcementKey]; value != "" && value != before.Labels[EnforcementKey] {
		errs = appendError(errs, checks[EnforcementKey](metadata.Child("labels").Key(EnforcementKey), value))
	}
	annotations := metadata.Child("annotations")
	for _, key := range fresh(before.Annotations, after.Annotations) {
		if check, known := checks[key]; known && after.Annotations[key] != "" {
			errs = appendError(errs, check(annotations.Key(key), after.Annotations[key]))
		}
	}
	if after.contradicts() && !before.contradicts() {
		errs = append(errs, field.Invalid(annotations.Key(StrategyKey), after.Annotations[StrategyKey],
			"spec.updateStrategy.type is Recreate, so the platform itself deletes all stale members at once: set that to OnReplenish first"))
	}
	pod := field.NewPath("spec", "podTemplate", "metadata")
	errs = append(errs, refusePodKeys(pod.Child("labels"), before.PodLabels, after.PodLabels)...)
	return append(errs, refusePodKeys(pod.Child("annotations"), before.PodAnnotations, after.PodAnnotations)...)
}

// contradicts: the annotation asks for steps, the spec for all at once.
func (in Inputs) contradicts() bool {
	return in.Annotations[StrategyKey] == string(freshness.RollingUpdate) && in.Strategy == string(freshness.Recreate)
}

// refusePodKeys: the platform copies this metadata onto every bound sandbox and
// its Pod, so that each edit would rewrite all of them.
func refusePodKeys(at *field.Path, before, after map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range fresh(before, after) {
		errs = append(errs, field.Forbidden(at.Key(key),
			"keys of "+Prefix+" are Freshbind's own on sandboxes and pods: remove it, or set it in metadata.annotations where it is an input"))
	}
	return errs
}

// Ignored returns a line for each annotation in after, and not in before, that
// is meant for Freshbind and is no input.
func Ignored(before, after Inputs) []string {
	var lines []string
	for _, key := range fresh(before.Annotations, after.Annotations) {
		if _, known := checks[key]; known || outputs[key] {
			continue
		}
		lines = append(lines, cut("metadata.annotations["+cut(key, maxName)+"] has no effect: it is not one of "+
			strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(checks)), ", "), Prefix, ""), MaxLine))
	}
	return lines
}

// outputs are the annotations that Freshbind itself writes on these objects.
var outputs = map[string]bool{
	Prefix + "admit": true, Prefix + "rollout-state": true, Prefix + "rollout-reason": true,
	Prefix + "rollout-observed-revision": true, Prefix + "rollout-status": true,
	Prefix + "attribution-suspended": true,
}

// IsOutput reports whether Freshbind itself writes this annotation of a pool.
func IsOutput(key string) bool { return outputs[key] }

// fresh returns the keys of ours, sorted, whose value in after is not the one in
// before.
func fresh(before, after map[string]string) []string {
	var keys []string
	for key, value := range after {
		if old, had := before[key]; strings.HasPrefix(key, Prefix) && (!had || old != value) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func appendError(errs field.ErrorList, err *field.Error) field.ErrorList {
	if err == nil {
		return errs
	}
	return append(errs, err)
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
	digits, percent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || percent && n > 100 {
		return field.Invalid(at, value, "must be a number of members, 1 or more, or a percentage from 1% to 100%")
	}
	return nil
}

func checkSeconds(at *field.Path, value string) *field.Error {
	if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < 0 {
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
	if _, err := revision.ParseList(value); err != nil {
		return field.Invalid(at, cut(value, MaxLine), err.Error())
	}
	return nil
}
