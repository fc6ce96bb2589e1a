package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// BenchmarkFilter and BenchmarkPrioritize measure whole requests, as they come
// over the wire, for a pod that is nobody's member and for a fresh one.
func BenchmarkFilter(b *testing.B) { benchmark(b, FilterPath) }

// BenchmarkPrioritize is the dearer one: it looks at every node.
func BenchmarkPrioritize(b *testing.B) { benchmark(b, PrioritizePath) }

func benchmark(b *testing.B, path string) {
	for _, pod := range []string{"other", "fresh"} {
		for _, n := range []int{100, 1000, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", pod, n), func(b *testing.B) {
				e := newExtender(members{prospects: known, placed: map[types.UID]string{}})
				names := make([]string, n)
				for i := range names {
					names[i] = fmt.Sprintf("node-%d.region-1.compute.internal", i)
					e.Nodes.OnAdd(makeNode(names[i], fmt.Sprintf("zone-%d", i%3)), true)
				}
				body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: podNamed(pod), NodeNames: &names})
				if err != nil {
					b.Fatal(err)
				}
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
