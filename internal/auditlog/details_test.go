package auditlog

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

var packings = map[string]*details{
	"nothing": {},
	"everything": {
		labels: []pair{{"a", "1"}, {"b", ""}}, annotations: []pair{{"c", "ü\n"}},
		owners: []ownerRef{
			{"agents.x-k8s.io/v1beta1", "Sandbox", "m", "uid-m", ptr.To(true)},
			{"v1", "Node", "n", "uid-n", ptr.To(false)},
			{uid: "uid-x"},
		},
		deleting: "2026-01-01T00:00:00Z",
		status:   status{ready: true, digest: math.MaxUint64, phase: "Running", ips: "10.0.0.1,::1", claimed: 3},
	},
	"not ready": {status: status{digest: 1 << 7}},
}

var packed1 = cmp.AllowUnexported(details{}, pair{}, ownerRef{}, status{})

func TestDetailsAreUnpackedAsTheyWerePacked(t *testing.T) {
	for name, want := range packings {
		t.Run(name, func(t *testing.T) {
			text := string(want.pack(nil))
			got, err := unpack(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, packed1); diff != "" {
				t.Errorf("details (-want,+got):\n%s", diff)
			}
			for end := range len(text) {
				if got, err := unpack(text[:end]); err == nil {
					t.Errorf("%d of %d bytes are %+v, want an error", end, len(text), got)
				}
			}
			if got, err := unpack(text + "x"); err == nil {
				t.Errorf("a byte too many is %+v, want an error", got)
			}
		})
	}
}

// Whatever can be unpacked is packed again to what is unpacked as the same.
func FuzzUnpack(f *testing.F) {
	for _, d := range packings {
		f.Add(string(d.pack(nil)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := unpack(text)
		if err != nil {
			return
		}
		again, err := unpack(string(d.pack(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again, packed1); diff != "" {
			t.Errorf("details (-first,+again):\n%s", diff)
		}
	})
}
