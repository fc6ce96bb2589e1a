package controlplane

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
				return
			}
			// A request over a connection to the etcd that is gone fails once.
			var listed error
			if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				_, listed = client.List(ctx, metav1.ListOptions{ResourceVersion: strconv.FormatInt(before, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
				return listed == nil || apierrors.IsResourceExpired(listed), nil
			}); !apierrors.IsResourceExpired(listed) {
				t.Errorf("what was before is not compacted: %v", errors.Join(err, listed))
			}
		})
	}
}
