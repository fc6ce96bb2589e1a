package chart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Calls are no replica's fault while one has lost its lease, and are again when it is back.
func TestCallsWithoutAReplica(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	k := &kubelet{}
	b := &binds{without: k.without}
	for s := range 200 {
		b.failed = append(b.failed, failure{at(s), "EOF"})
	}
	want := func(what string, n int) {
		t.Helper()
		if diff := cmp.Diff(n, len(b.lost())); diff != "" {
			t.Errorf("%s: calls lost (-want,+got):\n%s", what, diff)
		}
	}
	one, other := &replica{address: "one"}, &replica{address: "other"}
	k.served(one, at(50))
	k.served(other, at(50))
	want("both serve", 200)
	k.leaseLost(one)
	want("one lost its lease", 36)
	k.served(other, at(60))
	want("the other one serves", 36)
	k.leaseLost(one)
	k.served(one, at(100))
	want("it is back", 136)
	k.served(one, at(150))
	want("it goes on", 136)
}

// Both are what Helm says when the record of its release went with the namespace.
func TestHelmsRecordsThatAreGone(t *testing.T) {
	for message, want := range map[string]bool{
		"uninstall: Failed to purge the release: release: not found":                                     true,
		`uninstall: Failed to purge the release: secrets "sh.helm.release.v1.freshbind.v1" not found`:    true,
		`uninstall: Failed to purge the release: secrets "sh.helm.release.v1.freshbind.v1" is forbidden`: false,
		`uninstall: failed to delete release: secrets "sh.helm.release.v1.freshbind.v1" not found`:       false,
	} {
		if got := lostRecord.MatchString(message); got != want {
			t.Errorf("%q: lost is %t, want %t", message, got, want)
		}
	}
}
