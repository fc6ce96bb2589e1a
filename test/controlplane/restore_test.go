package controlplane

import (
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testRestore(t *testing.T, c *Cluster) {
	client := clientFor(t, c.Config()).CoreV1().ConfigMaps("default")
	version := func() int64 {
		t.Helper()
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	createConfigMap(t, clientFor(t, c.Config()), "kept")
	snapshot, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, forward := range map[string]bool{"back": false, "forward": true} {
		t.Run(name, func(t *testing.T) {
			// So many that API servers which start write less.
			for i := range 200 {
				createConfigMap(t, clientFor(t, c.Config()), name+"-lost-"+strconv.Itoa(i))
			}
			before := version()
			if err := c.Restore(t.Context(), snapshot, RestoreOptions{Forward: forward}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
				t.Errorf("what the snapshot has is not there: %v", err)
			}
			if _, err := client.Get(t.Context(), name+"-lost-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("what came after the snapshot is there: %v", err)
			}
			if after := version(); (after > before) != forward {
				t.Errorf("resourceVersion %d, %d before; want a newer one %t", after, before, forward)
			}
			if !forward {
				// The client would ask for a version that is not there yet again and again.
				return
			}
			_, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(before, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
			if !apierrors.IsResourceExpired(err) {
				t.Errorf("what was before is not compacted: %v", err)
			}
		})
	}
}
