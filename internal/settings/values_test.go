package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/freshbind/freshbind/internal/freshness"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		// want is part of what is said; "" is nothing.
		want string
	}{
		"a mode":                           {EnforcementKey, "enforce", ""},
		"another mode":                     {EnforcementKey, "Enforce", `supported values: "audit", "enforce"`},
		"a strategy":                       {StrategyKey, "RollingUpdate", ""},
		"another strategy":                 {StrategyKey, "Rolling", "supported values"},
		"a number of members":              {MaxUnavailableKey, "1", ""},
		"no member":                        {MaxUnavailableKey, "0", "1 or more"},
		"all members":                      {MaxUnavailableKey, "100%", ""},
		"more than all":                    {MaxUnavailableKey, "101%", "1% to 100%"},
		"more members than a pool has":     {MaxUnavailableKey, "101", ""},
		"no number of members":             {MaxUnavailableKey, "some", "1 or more"},
		"more than a number":               {MaxUnavailableKey, "99999999999999999999", "1 or more"},
		"seconds":                          {MinReadySecondsKey, "0", ""},
		"less than none":                   {MinReadySecondsKey, "-1", "0 or more"},
		"seconds with a unit":              {MinReadySecondsKey, "1s", "whole number"},
		"a duration":                       {ProgressDeadlineKey, "1h30m", ""},
		"no duration":                      {ProgressDeadlineKey, "0s", "above 0"},
		"a duration without unit":          {ProgressDeadlineKey, "10", "above 0"},
		"paused":                           {PausedKey, "true", ""},
		"paused, in other words":           {PausedKey, "yes", "supported values"},
		"a time":                           {RestartedAtKey, "2026-01-31T23:59:00Z", ""},
		"a date":                           {RestartedAtKey, "2026-01-31", "RFC 3339"},
		"paths":                            {InjectedPathsKey, "podTemplate.spec.nodeName", ""},
		"no paths":                         {InjectedPathsKey, "][", "Invalid value"},
		"by name":                          {ClaimsKey, "by-name", ""},
		"by another way":                   {ClaimsKey, "by-label", "supported values"},
		"repair":                           {RepairKey, "false", ""},
		"not set":                          {RepairKey, "", ""},
		"no input":                         {StampKey, "x", ""},
		"what others may say":              {"example.com/paused", "x", ""},
		"of a refusal the start is quoted": {InjectedPathsKey, strings.Repeat("[é", 200), "…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check(field.NewPath("metadata", "annotations").Key(tc.key), tc.key, tc.value)
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("Check() = %v, want nothing", got)
			case tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)):
				t.Errorf("Check() = %v, want %q in it", got, tc.want)
			case got != nil && len([]rune(fmt.Sprint(got.BadValue))) > maxQuoted:
				t.Errorf("Check() quotes all of a long value: %v", got.BadValue)
			}
		})
	}
}

// What people say and what Freshbind says is never the same key.
func TestInputsAreNoOutputs(t *testing.T) {
	inputs := Inputs()
	if len(inputs) != len(checks) {
		t.Errorf("Inputs() = %v, want the %d that are checked", inputs, len(checks))
	}
	for _, key := range inputs {
		if !strings.HasPrefix(key, Prefix) || IsOutput(key) {
			t.Errorf("%s is an output, or nobody's", key)
		}
	}
	want := []string{AdmitKey, AttributionKey, RolloutStateKey, RolloutReasonKey, RolloutRevisionKey, RolloutStatusKey}
	if diff := cmp.Diff(want, Outputs()); diff != "" {
		t.Errorf("Outputs() (-want,+got):\n%s", diff)
	}
	for _, key := range want {
		if !IsOutput(key) {
			t.Errorf("%s is no output", key)
		}
	}
}

func TestStrategyOf(t *testing.T) {
	d := Defaults{Strategy: freshness.RollingUpdate}
	for name, tc := range map[string]struct {
		annotation, spec string
		least, want      freshness.Strategy
	}{
		"nothing said":          {"", "", "", freshness.RollingUpdate},
		"the spec":              {"", "OnReplenish", "", freshness.OnReplenish},
		"the annotation":        {"Recreate", "OnReplenish", "", freshness.Recreate},
		"not less than a floor": {"OnReplenish", "", freshness.Recreate, freshness.Recreate},
		"above a floor":         {"Recreate", "", freshness.OnReplenish, freshness.Recreate},
	} {
		t.Run(name, func(t *testing.T) {
			if got := d.StrategyOf(tc.annotation, tc.spec, tc.least); got != tc.want {
				t.Errorf("StrategyOf() = %s, want %s", got, tc.want)
			}
		})
	}
}
