package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// benchMembers are all in the namespace, and the pool, of the pod that is asked
// about.
const benchMembers = 50_000

// BenchmarkFilter and BenchmarkPrioritize measure whole requests, as they come
// over the wire, for a pod that is nobody's member, for a fresh one and for one
// that is about to be deleted, beside the index of 50,000 placed members. What
// becomes of a pod they do not measure: BENCH=scheduler does.
func BenchmarkFilter(b *testing.B) { benchmark(b, FilterPath) }

// BenchmarkPrioritize is the dearer one: it looks at every node.
func BenchmarkPrioritize(b *testing.B) { benchmark(b, PrioritizePath) }

func benchmark(b *testing.B, path string) {
	e := newExtender(members{dispositions: known})
	all := make([]string, 5000)
	for i := range all {
		all[i] = fmt.Sprintf("node-%d.region-1.compute.internal", i)
		e.Nodes.OnAdd(makeNode(all[i], fmt.Sprintf("zone-%d", i%3), "docker.io/library/sandbox:v1", "quay.io/other:v2"), true)
	}
	one := makeMember("p", "python", "")
	for i := range benchMembers {
		name := fmt.Sprint("python-", i)
		m := object(one.GroupVersionKind())
		m.SetNamespace(one.GetNamespace())
		m.SetName(name)
		m.SetOwnerReferences(one.GetOwnerReferences())
		e.Placed.Members().OnAdd(m, true)
		e.Placed.Pods().OnAdd(makePlaced(name, types.UID(name), all[i%len(all)]), true)
	}
	for _, n := range []int{100, 1000, 5000} {
		for _, pod := range []string{"other", "fresh", "stale"} {
			names, asks := all[:n], podNamed(pod)
			asks.Spec.Containers = []corev1.Container{{Name: "c", Image: "sandbox:v1"}}
			body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: asks, NodeNames: &names})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/nodes=%d", pod, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if w := ask(e, http.MethodPost, path, bytes.NewReader(body)); w.Code != http.StatusOK {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}
