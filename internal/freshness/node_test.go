package freshness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func evicting(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute}
}

func TestLeaving(t *testing.T) {
	dedicated := Node{Evicting: []corev1.Taint{evicting("dedicated", "sandbox")}}
	both := Node{Evicting: []corev1.Taint{evicting("dedicated", "sandbox"), evicting("going", "")}}
	ranked := Node{Evicting: []corev1.Taint{evicting("rank", "5")}}
	const evicts = "taint dedicated evicts"
	tolerates := func(list ...corev1.Toleration) []corev1.Toleration { return list }
	equal := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "sandbox"}
	forAMinute := equal
	forAMinute.TolerationSeconds = ptr.To(int64(60))
	cases := map[string]struct {
		node        Node
		tolerations []corev1.Toleration
		want        string
	}{
		"well":                          {Node{}, nil, ""},
		"gone":                          {Node{Gone: true}, nil, "it does not exist any more"},
		"being deleted":                 {Node{Deleting: true}, nil, "it is being deleted"},
		"not ready":                     {Node{NotReady: true}, nil, "it is not ready"},
		"taint":                         {dedicated, nil, evicts},
		"tolerated, equal":              {dedicated, tolerates(equal), ""},
		"tolerated, operator left out":  {dedicated, tolerates(corev1.Toleration{Key: "dedicated", Value: "sandbox"}), ""},
		"tolerated, another value":      {dedicated, tolerates(corev1.Toleration{Key: "dedicated", Value: "batch"}), evicts},
		"tolerated, another key":        {dedicated, tolerates(corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}), evicts},
		"tolerated, exists":             {dedicated, tolerates(corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}), ""},
		"tolerated, everything":         {dedicated, tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}), ""},
		"tolerated, this effect":        {dedicated, tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), ""},
		"tolerated, another effect":     {dedicated, tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}), evicts},
		"tolerated for a while":         {dedicated, tolerates(forAMinute), evicts},
		"the first that matches counts": {dedicated, tolerates(forAMinute, equal), evicts},
		"an earlier one does not match": {dedicated, tolerates(corev1.Toleration{Key: "other", TolerationSeconds: ptr.To(int64(1))}, equal), ""},
		"one of two taints tolerated":   {both, tolerates(equal), "taint going evicts"},
		"each by its own":               {both, tolerates(equal, corev1.Toleration{Key: "going", Operator: corev1.TolerationOpExists}), ""},
		"tolerated, and not ready":      {Node{NotReady: true, Evicting: dedicated.Evicting}, tolerates(equal), "it is not ready"},
		"tolerated by comparison":       {ranked, tolerates(corev1.Toleration{Key: "rank", Operator: corev1.TolerationOpLt, Value: "9"}), ""},
		"not by comparison":             {ranked, tolerates(corev1.Toleration{Key: "rank", Operator: corev1.TolerationOpGt, Value: "9"}), "taint rank evicts"},
		"what cannot be compared":       {dedicated, tolerates(corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpGt, Value: "x"}), evicts},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.node.Leaving(tc.tolerations); got != tc.want {
				t.Errorf("Leaving() = %q, want %q", got, tc.want)
			}
		})
	}
}

// What tolerates a cordon would come back to the node.
func TestIsCordoned(t *testing.T) {
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	scalesDown := corev1.Taint{Key: "ToBeDeletedByClusterAutoscaler", Value: "1764036000", Effect: corev1.TaintEffectNoSchedule}
	stays := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	forAMinute := stays
	forAMinute.TolerationSeconds = ptr.To(int64(60))
	evicted := corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		node        Node
		tolerations []corev1.Toleration
		want        bool
	}{
		"well":                         {Node{}, nil, false},
		"leaving for another reason":   {Node{Deleting: true, NotReady: true, Evicting: []corev1.Taint{evicting("k", "")}}, nil, false},
		"cordoned":                     {Node{Cordoned: []corev1.Taint{unschedulable}}, nil, true},
		"tolerated":                    {Node{Cordoned: []corev1.Taint{unschedulable}}, []corev1.Toleration{stays}, false},
		"tolerated with all else":      {Node{Cordoned: []corev1.Taint{unschedulable}}, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, false},
		"tolerated for a while":        {Node{Cordoned: []corev1.Taint{unschedulable}}, []corev1.Toleration{forAMinute}, true},
		"another effect is tolerated":  {Node{Cordoned: []corev1.Taint{unschedulable}}, []corev1.Toleration{evicted}, true},
		"an autoscaler empties it too": {Node{Cordoned: []corev1.Taint{unschedulable, scalesDown}}, []corev1.Toleration{stays}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.node.IsCordoned(tc.tolerations); got != tc.want {
				t.Errorf("IsCordoned() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWorseThan(t *testing.T) {
	tainted := Node{Evicting: []corev1.Taint{evicting("dedicated", "sandbox")}}
	cases := map[string]struct {
		before, now Node
		want        bool
	}{
		"well before and now":     {Node{}, Node{}, false},
		"gone":                    {Node{}, Node{Gone: true}, true},
		"being deleted":           {Node{}, Node{Deleting: true}, true},
		"not ready":               {Node{}, Node{NotReady: true}, true},
		"tainted":                 {Node{}, tainted, true},
		"tainted as before":       {tainted, tainted, false},
		"taint taken off":         {tainted, Node{}, false},
		"another taint":           {tainted, Node{Evicting: append(tainted.Evicting, evicting("going", ""))}, true},
		"tainted node goes":       {tainted, Node{Gone: true}, true},
		"gone after not ready":    {Node{NotReady: true}, Node{Gone: true}, false},
		"tainted while deleting":  {Node{Deleting: true}, tainted, false},
		"came back, with a taint": {Node{Gone: true}, tainted, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.now.WorseThan(tc.before); got != tc.want {
				t.Errorf("WorseThan() = %t, want %t", got, tc.want)
			}
		})
	}
}
