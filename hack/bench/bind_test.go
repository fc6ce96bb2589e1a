package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/freshbind/freshbind/webhooks"
)

func TestLiveReads(t *testing.T) {
	got, err := liveReads("# HELP freshbind_live_reads_total x\nfreshbind_live_reads_total{platform=\"a\",resource=\"pods\",result=\"ok\"} 3\n" +
		"freshbind_live_reads_total{resource=\"pods\",result=\"absent\"} 1\n" +
		"freshbind_live_reads_joined_total 9\nfreshbind_live_reads_total{resource=\"other\",result=\"absent\"} 1.5e+01\n")
	if diff := cmp.Diff(reads{"pods": 4, "other": 15}, got); diff != "" || err != nil || got.all() != 19 {
		t.Errorf("liveReads() = %v together, %v (-want,+got):\n%s", got.all(), err, diff)
	}
	if _, err := liveReads("freshbind_live_reads_total{resource=\"pods\"} x"); err == nil {
		t.Error("no error for a number that is none")
	}
}

func TestInTurns(t *testing.T) {
	if diff := cmp.Diff([]int{1, 4, 2, 5, 3, 6}, inTurns([]int{1, 2, 3, 4, 5, 6}, 3)); diff != "" {
		t.Errorf("inTurns() (-want,+got):\n%s", diff)
	}
}

// What 1,000 binds in a second take follows from what one takes.
func TestWhatAThousandBindsTake(t *testing.T) {
	s := sustained{
		besideServer: {greatest: []float64{80}, held: []float64{60}, half: []float64{20}, cpu: map[string][]float64{"etcd": {0.5}, "freshbind": {1.5}}, reads: []float64{4}},
		byItself: {greatest: []float64{500, 600}, held: []float64{400, 600}, half: []float64{5, 6}, cpu: map[string][]float64{"freshbind": {1}}, reads: []float64{4, 4},
			lasted: []time.Duration{time.Millisecond, webhooks.BindHook.Timeout, time.Millisecond}},
	}
	got := map[string]float64{}
	for _, r := range s.rows() {
		got[r.what] = r.figure()
	}
	for what, want := range map[string]float64{
		"replicas for 1000 binds in a second, each as here":                                      3,
		"CPUs of etcd for 1000 binds in a second, what the writes themselves take left out":      0.5,
		"CPUs of freshbind for 1000 binds in a second, what the writes themselves take left out": 1.5,
		"reads answered from memory: with a p99 of 100ms at most":                                600,
		"reads answered by the API server: CPU of freshbind for one bind":                        1.5,
		"reads answered from memory: 1000 binds a second for 1m0s: p99":                          1000 * webhooks.BindHook.Timeout.Seconds(),
		"reads answered from memory: 1000 binds a second for 1m0s: not answered in time":         1,
	} {
		if got[what] != want {
			t.Errorf("%s: %v, want %v, of %v", what, got[what], want, got)
		}
	}
}

// askedOf is an asker of a server that answers as it is told.
func askedOf(t *testing.T, answer func(number int64) *admissionv1.AdmissionResponse) *asker {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{Response: answer(asked.Add(1))})
	}))
	t.Cleanup(server.Close)
	return &asker{client: server.Client(), url: server.URL, reviews: [][]byte{[]byte("{}")}}
}

func TestAskersCountOnlyWhatIsAllowed(t *testing.T) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	always := askedOf(t, func(int64) *admissionv1.AdmissionResponse { return allowed })
	took, err := always.offer(t.Context(), 1000, 20*time.Millisecond)
	if len(took) != 20 || err != nil || slices.Min(took) <= 0 || slices.Contains(took, webhooks.BindHook.Timeout) {
		t.Errorf("offer() = %v, %v, want 20 answers", took, err)
	}
	if rate, err := always.flood(t.Context(), 2, time.Millisecond); rate <= 0 || err != nil {
		t.Errorf("flood() = %v, %v", rate, err)
	}
	for name, no := range map[string]*admissionv1.AdmissionResponse{"denied": {}, "no answer": nil} {
		once := askedOf(t, func(number int64) *admissionv1.AdmissionResponse {
			if number == 2 {
				return no
			}
			return allowed
		})
		took, err := once.offer(t.Context(), 1000, 5*time.Millisecond)
		late := 0
		for _, d := range took {
			if d == webhooks.BindHook.Timeout {
				late++
			}
		}
		if late != 1 || err != nil {
			t.Errorf("%s: offer() = %v, %v, want one that took the webhook's timeout", name, took, err)
		}
		refusing := askedOf(t, func(int64) *admissionv1.AdmissionResponse { return no })
		if _, err := refusing.flood(t.Context(), 2, time.Hour); err == nil {
			t.Errorf("%s: flood() has no error", name)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := always.offer(gone, 1, time.Hour); err == nil {
		t.Error("offer() goes on when nobody wants it")
	}
}
