package advice

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
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

// Refusals lists what cannot be accepted in after and is not in before already:
// a value that was accepted once never locks its object.
func Refusals(before, after Inputs) field.ErrorList {
	metadata := field.NewPath("metadata")
	var errs field.ErrorList
	if value := after.Labels[settings.EnforcementKey]; value != "" && value != before.Labels[settings.EnforcementKey] {
		errs = appendError(errs, settings.Check(metadata.Child("labels").Key(settings.EnforcementKey), settings.EnforcementKey, value))
	}
	annotations := metadata.Child("annotations")
	for _, key := range fresh(before.Annotations, after.Annotations) {
		errs = appendError(errs, settings.Check(annotations.Key(key), key, after.Annotations[key]))
	}
	if after.contradicts() && !before.contradicts() {
		errs = append(errs, field.Invalid(annotations.Key(settings.StrategyKey), after.Annotations[settings.StrategyKey],
			"spec.updateStrategy.type is Recreate, so the platform itself deletes all stale members at once: set that to OnReplenish first"))
	}
	pod := field.NewPath("spec", "podTemplate", "metadata")
	errs = append(errs, refusePodKeys(pod.Child("labels"), before.PodLabels, after.PodLabels)...)
	return append(errs, refusePodKeys(pod.Child("annotations"), before.PodAnnotations, after.PodAnnotations)...)
}

// contradicts: the annotation asks for steps, the spec for all at once.
func (in Inputs) contradicts() bool {
	return in.Annotations[settings.StrategyKey] == string(freshness.RollingUpdate) && in.Strategy == string(freshness.Recreate)
}

// refusePodKeys: the platform copies this metadata onto every bound sandbox and
// its Pod, so that each edit would rewrite all of them.
func refusePodKeys(at *field.Path, before, after map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range fresh(before, after) {
		errs = append(errs, field.Forbidden(at.Key(key),
			"keys of "+settings.Prefix+" are Freshbind's own on sandboxes and pods: remove it, or set it in metadata.annotations where it is an input"))
	}
	return errs
}

// Ignored returns a line for each annotation in after, and not in before, that
// is meant for Freshbind and is no input.
func Ignored(before, after Inputs) []string {
	var lines []string
	inputs := settings.Inputs()
	for _, key := range fresh(before.Annotations, after.Annotations) {
		if slices.Contains(inputs, key) || settings.IsOutput(key) {
			continue
		}
		lines = append(lines, revision.Truncate("metadata.annotations["+revision.Truncate(key, maxName)+"] has no effect: it is not one of "+
			strings.ReplaceAll(strings.Join(inputs, ", "), settings.Prefix, ""), MaxLine))
	}
	return lines
}

// fresh returns the keys of ours, sorted, whose value in after is not the one in
// before.
func fresh(before, after map[string]string) []string {
	var keys []string
	for key, value := range after {
		if old, had := before[key]; strings.HasPrefix(key, settings.Prefix) && (!had || old != value) {
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
