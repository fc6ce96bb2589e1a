package routers

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes/routestest"
)

// defects are the named tests that the cache of agent-sandbox's router v1.0.3
// fails, and why.
var defects = map[string]string{
	"clock-ahead":                  noAge,
	"late-event-after-delete":      "No version is compared and no deletion remembered: an entry is as old as the event that came last.",
	"late-event-long-after-delete": "As late-event-after-delete, however long ago the deletion was.",
	"late-event-of-old-pod":        "Entries are by the Sandbox's UID and not tied to a Pod: when the old Pod ends, the new one's entry goes (#1397).",
	"recycled-sandbox-old-id":      "Neither name nor UID of a Sandbox changes when somebody else gets it, and nothing else is asked for.",
	"shutdown-time-passed":         "Only Pods are watched: a sandbox whose time is over is served until its Pod is gone.",
	"terminating-pod":              "A Pod is served while it is Ready, and a deletionTimestamp is not looked at.",
	"updates-lost":                 noAge,
}

const noAge = "The cache does not know how old its view is, and serves it whatever its age."

// TestRouterCache runs the kit on the real cache. When the list changes, upstream
// has mended something, or the kit finds more.
func TestRouterCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := routestest.Failures(routerCaches(t))
		got := slices.Sorted(maps.Keys(failed))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(defects)), got); diff != "" {
			t.Errorf("failed tests (-want +got):\n%s", diff)
		}
		for _, name := range got {
			t.Logf("%v\n%s", failed[name], defects[name])
		}
	})
}

// TestRouterCacheHistories shows that random histories find a defect, too, and
// tell it in a few lines.
func TestRouterCacheHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := routestest.Histories(routerCaches(t), routestest.HistoryOptions{Steps: 50_000, Seed: 1})
		var story *routestest.HistoryError
		if !errors.As(err, &story) {
			t.Fatalf("random histories: got %v, want a failure", err)
		}
		if len(story.Story) > 12 {
			t.Errorf("the story has %d lines, want it shorter", len(story.Story))
		}
		t.Log(story)
	})
}
