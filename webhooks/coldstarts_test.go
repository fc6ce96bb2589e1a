package webhooks

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

func TestColdStarts(t *testing.T) {
	type step struct {
		op    freshness.Operation
		claim string
		outcome
	}
	pass, deny := freshness.Verdict{Allowed: true}, freshness.Verdict{}
	enforced := func(v freshness.Verdict) outcome { return outcome{Verdict: v, mode: settings.Enforce} }
	audited := func(v freshness.Verdict) outcome { return outcome{Verdict: v, mode: settings.Audit} }
	required := outcome{Verdict: pass, mode: settings.Enforce, alwaysCold: true}
	undecided := outcome{err: errors.New("etcd is away"), mode: settings.Enforce}
	cold := step{freshness.ColdStart, "u1", enforced(pass)}

	cases := map[string]struct {
		steps []step
		want  map[coldCause]float64
	}{
		"nothing refused":            {[]step{cold}, map[coldCause]float64{poolEmpty: 1}},
		"created twice":              {[]step{cold, cold}, map[coldCause]float64{poolEmpty: 1}},
		"a member refused":           {[]step{{freshness.Bind, "u1", enforced(deny)}, cold}, map[coldCause]float64{memberRefused: 1}},
		"a bare pod refused":         {[]step{{freshness.Release, "u1", enforced(deny)}, cold}, map[coldCause]float64{memberRefused: 1}},
		"to another claim":           {[]step{{freshness.Bind, "u2", enforced(deny)}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"to nobody that is known":    {[]step{{freshness.Release, "", enforced(deny)}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"nobody's, after that":       {[]step{{freshness.Release, "", enforced(deny)}, {freshness.ColdStart, "", enforced(pass)}}, map[coldCause]float64{poolEmpty: 1}},
		"refused, then bound":        {[]step{{freshness.Bind, "u1", enforced(deny)}, {freshness.Bind, "u1", enforced(pass)}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"would be refused":           {[]step{{freshness.Bind, "u1", audited(deny)}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"a bind not decided":         {[]step{{freshness.Bind, "u1", undecided}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"required":                   {[]step{{freshness.ColdStart, "u1", required}}, map[coldCause]float64{claimRequires: 1}},
		"required and refused":       {[]step{{freshness.Bind, "u1", enforced(deny)}, {freshness.ColdStart, "u1", required}}, map[coldCause]float64{claimRequires: 1}},
		"itself refused, then let":   {[]step{{freshness.ColdStart, "u1", enforced(deny)}, cold}, map[coldCause]float64{poolEmpty: 1}},
		"itself only refused":        {[]step{{freshness.ColdStart, "u1", enforced(deny)}}, nil},
		"itself refused in audit":    {[]step{{freshness.ColdStart, "u1", audited(deny)}}, map[coldCause]float64{poolEmpty: 1}},
		"itself not decided":         {[]step{{freshness.ColdStart, "u1", undecided}}, nil},
		"a sandbox in a bare pod":    {[]step{{freshness.WarmStart, "u1", enforced(pass)}}, nil},
		"a birth is no cold start":   {[]step{{freshness.Birth, "", enforced(pass)}}, nil},
		"two claims, one was denied": {[]step{{freshness.Bind, "u1", enforced(deny)}, cold, {freshness.ColdStart, "u2", enforced(pass)}}, map[coldCause]float64{memberRefused: 1, poolEmpty: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newColdStarts(prometheus.NewRegistry())
			for _, s := range tc.steps {
				c.observe(platform.Write{Operation: s.op, Claim: freshness.Owner{UID: s.claim}}, s.outcome)
			}
			var got map[coldCause]float64
			for _, cause := range []coldCause{claimRequires, memberRefused, poolEmpty} {
				if n := testutil.ToFloat64(c.total.WithLabelValues(string(cause))); n > 0 {
					if got == nil {
						got = map[coldCause]float64{}
					}
					got[cause] = n
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("cold starts (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRepairsAreCounted(t *testing.T) {
	const note = "v1-a -> v1-b"
	outcomeOf := func(allowed bool, repaired string) outcome {
		return outcome{Verdict: freshness.Verdict{Allowed: allowed}, mode: settings.Enforce, repaired: repaired}
	}
	cases := map[string]struct {
		outcomes []outcome
		want     map[string]float64
	}{
		"let through":              {[]outcome{outcomeOf(true, note)}, map[string]float64{repairAdmitted: 1, repairRefused: 0}},
		"created twice":            {[]outcome{outcomeOf(true, note), outcomeOf(true, note)}, map[string]float64{repairAdmitted: 1, repairRefused: 0}},
		"refused, then let":        {[]outcome{outcomeOf(false, note), outcomeOf(true, note)}, map[string]float64{repairAdmitted: 1, repairRefused: 1}},
		"current by itself":        {[]outcome{outcomeOf(true, "")}, map[string]float64{repairAdmitted: 0, repairRefused: 0}},
		"refused, and not touched": {[]outcome{outcomeOf(false, "")}, map[string]float64{repairAdmitted: 0, repairRefused: 0}},
		"not decided":              {[]outcome{{err: errors.New("etcd is away"), mode: settings.Enforce, repaired: note}}, map[string]float64{repairAdmitted: 0, repairRefused: 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newColdStarts(prometheus.NewRegistry())
			for _, o := range tc.outcomes {
				c.observe(platform.Write{Operation: freshness.ColdStart, Claim: freshness.Owner{UID: "u1"}}, o)
			}
			got := map[string]float64{}
			for _, result := range []string{repairAdmitted, repairRefused} {
				got[result] = testutil.ToFloat64(c.repairs.WithLabelValues("coldstart", result))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("repairs (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRepairedBirthsAreCountedEach(t *testing.T) {
	c := newColdStarts(prometheus.NewRegistry())
	for _, allowed := range []bool{true, true, false} {
		for _, repaired := range []string{"v1-a -> v1-b", ""} {
			c.observe(platform.Write{Operation: freshness.Birth}, outcome{Verdict: freshness.Verdict{Allowed: allowed}, mode: settings.Enforce, repaired: repaired})
		}
	}
	for result, want := range map[string]float64{repairAdmitted: 2, repairRefused: 1} {
		if got := testutil.ToFloat64(c.repairs.WithLabelValues("birth", result)); got != want {
			t.Errorf("%v births are counted as %s, want %v", got, result, want)
		}
	}
}

func TestColdStartsForgetsTheOldest(t *testing.T) {
	c := newColdStarts(prometheus.NewRegistry())
	refuse := func(uid string) {
		c.observe(platform.Write{Operation: freshness.Bind, Claim: freshness.Owner{UID: uid}}, outcome{mode: settings.Enforce})
	}
	for i := range 1000 {
		refuse(fmt.Sprint(i) + strings.Repeat("x", 10_000))
	}
	refuse("last")
	_, first := c.refused.Get("0" + strings.Repeat("x", 10_000))
	_, last := c.refused.Get("last")
	if n := c.refused.Bytes(); n > refusedBytes || first || !last {
		t.Errorf("%d bytes of claims are remembered, the first %t, the last %t", n, first, last)
	}
}
