package sentinel

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

func object(name, version string, terminating bool) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("u-" + name), ResourceVersion: version}}
	if terminating {
		o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return o
}

func TestDeletions(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*Deletions)
		want []string
		// forgotten is the reason that one or more were.
		forgotten string
	}{
		"deleted":         {do: func(m *Deletions) { m.gone(object("s1", "10", true), "99") }, want: []string{"s1 10"}},
		"being deleted":   {do: func(m *Deletions) { m.changed(object("s1", "10", true)) }, want: []string{"s1 10"}},
		"then deleted":    {do: func(m *Deletions) { m.changed(object("s1", "10", true)); m.gone(object("s1", "12", true), "") }, want: []string{"s1 12"}},
		"there":           {do: func(m *Deletions) { m.changed(object("s1", "10", false)) }},
		"not of a number": {do: func(m *Deletions) { m.gone(object("s1", "x", true), "") }},
		"an older one":    {do: func(m *Deletions) { m.gone(object("s1", "12", true), ""); m.gone(object("s1", "10", true), "") }, want: []string{"s1 12"}},
		"missing in a list": {do: func(m *Deletions) {
			m.gone(toolscache.DeletedFinalStateUnknown{Key: "a/s1", Obj: object("s1", "10", false)}, "30")
		}, want: []string{"s1 30"}},
		"the latest first": {do: func(m *Deletions) {
			m.gone(object("s1", "10", true), "")
			m.gone(object("s2", "11", true), "")
			m.gone(object("s1", "12", true), "")
		}, want: []string{"s1 12", "s2 11"}},
		"its name is in use again": {do: func(m *Deletions) {
			m.gone(object("s1", "10", true), "")
			m.gone(object("s2", "11", true), "")
			m.changed(object("s1", "12", false))
		}, want: []string{"s2 11"}, forgotten: reasonReturned},
		"etcd restored": {do: func(m *Deletions) {
			m.gone(object("s1", "10", true), "")
			m.gone(object("s2", "11", true), "")
			m.changed(object("s1", "5", false))
		}, forgotten: reasonRestored},
		"more than it remembers": {do: func(m *Deletions) {
			for i := range 5 {
				m.gone(object(fmt.Sprintf("s%d", i), fmt.Sprint(10+i), true), "")
			}
		}, want: []string{"s4 14", "s3 13", "s2 12"}, forgotten: reasonFull},
		"long ago": {do: func(m *Deletions) {
			m.gone(object("s1", "10", true), "")
			time.Sleep(30 * time.Minute)
			m.gone(object("s2", "11", true), "")
			time.Sleep(31 * time.Minute)
		}, want: []string{"s2 11"}, forgotten: reasonAged},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics := NewMetrics(prometheus.NewRegistry())
				m := NewDeletions(3, time.Hour, metrics)
				tc.do(m)
				var got []string
				all, _ := m.all()
				for _, d := range all {
					got = append(got, fmt.Sprintf("%s %d", d.Name, d.Version))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("remembered (-want +got):\n%s", diff)
				}
				for _, reason := range []string{reasonFull, reasonAged, reasonReturned, reasonRestored} {
					if got := testutil.ToFloat64(metrics.forgotten.WithLabelValues(reason)) > 0; got != (reason == tc.forgotten) {
						t.Errorf("forgotten because %s: %t", reason, got)
					}
				}
				if got := testutil.ToFloat64(metrics.deletions); got != float64(len(tc.want)) {
					t.Errorf("the metric says %v, want %d", got, len(tc.want))
				}
			})
		})
	}
}
