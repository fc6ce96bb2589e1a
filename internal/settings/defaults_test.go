package settings

import "testing"

func TestModeOf(t *testing.T) {
	prod := floors(t, tier("prod", true, ""))
	for name, tc := range map[string]struct {
		byDefault Mode
		floors    Floors
		namespace map[string]string
		pool      string
		want      Mode
	}{
		"nothing said":               {Audit, nil, nil, "", Audit},
		"enforced by default":        {Enforce, nil, nil, "", Enforce},
		"the namespace":              {Audit, nil, map[string]string{EnforcementKey: "enforce"}, "", Enforce},
		"the brake":                  {Enforce, nil, map[string]string{EnforcementKey: "audit"}, "", Audit},
		"a word that nobody knows":   {Audit, nil, map[string]string{EnforcementKey: "Enforce"}, "", Audit},
		"a pool tightens":            {Audit, nil, map[string]string{EnforcementKey: "audit"}, "enforce", Enforce},
		"a pool does not loosen":     {Audit, nil, map[string]string{EnforcementKey: "enforce"}, "audit", Enforce},
		"nothing goes below a floor": {Audit, prod, map[string]string{"tier": "prod", EnforcementKey: "audit"}, "audit", Enforce},
		"a floor for other ones":     {Audit, prod, map[string]string{"tier": "test"}, "", Audit},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Defaults{Mode: tc.byDefault, Floors: tc.floors}).ModeOf(tc.namespace, tc.pool); got != tc.want {
				t.Errorf("ModeOf() = %s, want %s", got, tc.want)
			}
		})
	}
}
