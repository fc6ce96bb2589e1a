package chaos

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
)

// fault is one row of the table.
type fault struct {
	name string
	// begin makes it. What it returns tells whether it has shown, and ends it.
	begin func(*stage) (shows func(context.Context) (string, bool), end func())
	// stops: claims cannot get ready while it lasts, or edits cannot be stored, so that
	// the load ends after the fault; else it has to end before.
	stops bool
	// restarts: a replica ends, so that what it held before says nothing.
	restarts bool
	// alike says why it comes to the same whatever the platform is; those that say so are
	// made with agent-sandbox alone.
	alike string
	// also are tests that show it elsewhere, by what they look at.
	also string
}

// unread: no platform is asked before a review has been read.
const unread = "no review is read"

// faults in the order in which they are made.
var faults = []fault{
	{name: "watches-late", begin: watchesLate, also: "TestLatePoolController, TestAuditBrakesWhateverIsCached, TestStorm"},
	{name: "watches-cut", begin: watchesCut, also: "TestNothingIsDoneBeforeTheViewIsWhole"},
	{name: "watches-reordered", begin: watchesReordered, also: "TestStoriesOnARealAPIServer, TestAnAPIServerOlderThanEtcd"},
	{name: "client-429", begin: answers(controlplane.SpoilBusy), stops: true},
	{name: "client-500", begin: answers(controlplane.SpoilFails), stops: true},
	{name: "client-cut", begin: answers(controlplane.SpoilCuts), stops: true},
	{name: "client-timeouts", begin: requestsHeld, stops: true, also: "TestNothingIsDoneBeforeTheViewIsWhole"},
	{name: "reviews-malformed", begin: reviewsMalformed},
	{name: "bodies-huge", begin: bodiesHuge, alike: unread},
	{name: "bodies-slow", begin: bodiesSlow, alike: unread},
	{name: "bodies-announced", begin: bodiesAnnounced, alike: unread},
	{name: "connections-many", begin: connectionsMany, alike: unread},
	{name: "certificate-expired", begin: certificateExpired, stops: true, also: "TestCertificateReplaced, TestRenewalsAndAChangeOfIssuerFailNoCall"},
	{name: "apiserver-frozen", begin: frozen(controlplane.KubeAPIServer + "-0"), stops: true},
	{name: "etcd-frozen", begin: frozen(controlplane.Etcd), stops: true},
	{name: "leader-frozen", begin: leaderFrozen, stops: true, restarts: true, alike: "the lease is no platform's, and replicas-killed has another one go on"},
	{name: "replicas-killed", begin: replicasKilled, stops: true, restarts: true, also: "TestAnotherReplicaGoesOnWithARollout, TestAnotherReplicaGoesOnWithABackfill, TestWebhookStopped, TestAKilledReplicaIsSoonLeftOut, TestStorm"},
	{name: "etcd-restored", begin: etcdRestored(false), restarts: true, alike: "Freshbind ends, with all that it kept of a platform", also: "TestMemoTellsTemplatesApart, TestTheLeaseTellsOfARestore"},
	{name: "etcd-restored-forward", begin: etcdRestored(true), also: "TestMemoTellsTemplatesApart, TestWhatAListHasIsNoLaterVersion, TestWhatAWatchDeliversAsAVersion"},
	{name: "clock-steps", begin: clockSteps, also: "TestPlanWithClocksThatDiffer"},
}

// now is a fault that has shown when it was made, and ends without more.
func now(what string, end func()) (func(context.Context) (string, bool), func()) {
	return func(context.Context) (string, bool) { return what, true }, end
}

// proxies are Freshbind's, and those of whose pools it keeps.
func (s *stage) proxies() []*controlplane.Proxy {
	return append([]*controlplane.Proxy{s.w.proxy}, s.w.platform.Proxies()...)
}

// everyWatch does something to what Freshbind watches, and to what the platform does.
func (s *stage) everyWatch(do func(*controlplane.Proxy, schema.GroupResource)) {
	for _, p := range s.proxies() {
		for _, r := range s.w.platform.Watched() {
			do(p, r)
		}
	}
}

func watchesLate(s *stage) (func(context.Context) (string, bool), func()) {
	late := func(d time.Duration) {
		s.everyWatch(func(p *controlplane.Proxy, r schema.GroupResource) { p.SetDelay(r.Group, r.Resource, d) })
	}
	late(500 * time.Millisecond)
	for _, p := range s.proxies() {
		for _, r := range s.w.platform.Templates() {
			p.SetDelay(r.Group, r.Resource, 2*time.Second)
		}
	}
	return now("all watches are late", func() { late(0) })
}

// again does something again and again until it is stopped, and says how often it has.
func again(do func(times int)) (times *atomic.Int64, stop func()) {
	times = &atomic.Int64{}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				do(int(times.Load()) + 1)
				times.Add(1)
			}
		}
	}()
	return times, func() { close(end); <-ended }
}

// watchesCut breaks all watches off again and again while the load lasts.
func watchesCut(s *stage) (func(context.Context) (string, bool), func()) {
	cuts, stop := again(func(int) {
		s.everyWatch(func(p *controlplane.Proxy, r schema.GroupResource) { p.CutWatches(r.Group, r.Resource) })
	})
	const enough = 5
	return func(context.Context) (string, bool) {
		return fmt.Sprintf("cut %d times", cuts.Load()), cuts.Load() >= enough
	}, stop
}

// watchesReordered has one resource after the other held back while the others go on:
// a watch keeps its order, those of several resources need not.
func watchesReordered(s *stage) (func(context.Context) (string, bool), func()) {
	watched := s.w.platform.Watched()
	release := func(p *controlplane.Proxy, r schema.GroupResource) { p.Release(r.Group, r.Resource) }
	turns, stop := again(func(turn int) {
		next := watched[turn%len(watched)]
		s.everyWatch(release)
		for _, p := range s.proxies() {
			p.Hold(next.Group, next.Resource)
		}
	})
	return func(context.Context) (string, bool) {
		return fmt.Sprintf("%d turns", turns.Load()), int(turns.Load()) > len(watched)
	}, func() { stop(); s.everyWatch(release) }
}

// enoughAnswers have to be spoilt before a fault has shown.
const enoughAnswers = 20

func answers(with controlplane.Spoil) func(*stage) (func(context.Context) (string, bool), func()) {
	return func(s *stage) (func(context.Context) (string, bool), func()) {
		var spoilt atomic.Int64
		s.w.proxy.SpoilAnswers(func(*http.Request) controlplane.Spoil {
			spoilt.Add(1)
			return with
		})
		return func(context.Context) (string, bool) {
			return fmt.Sprintf("%d answers spoilt", spoilt.Load()), spoilt.Load() >= enoughAnswers
		}, func() { s.w.proxy.SpoilAnswers(nil) }
	}
}

func requestsHeld(s *stage) (func(context.Context) (string, bool), func()) {
	var held atomic.Int64
	s.w.proxy.HoldRequests(func(*http.Request) bool { held.Add(1); return true })
	return func(context.Context) (string, bool) {
		return fmt.Sprintf("%d requests held", held.Load()), held.Load() >= enoughAnswers
	}, func() { s.w.proxy.HoldRequests(nil) }
}

// frozen stops a program of the control plane until nobody is answered.
func frozen(program string) func(*stage) (func(context.Context) (string, bool), func()) {
	return func(s *stage) (func(context.Context) (string, bool), func()) {
		pid, ok := s.w.Cluster.PID(program)
		if !ok {
			s.t.Fatalf("%s does not run", program)
		}
		s.must(syscall.Kill(pid, syscall.SIGSTOP))
		kube := s.kube()
		unanswered := 0
		return func(ctx context.Context) (string, bool) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			// Without a version it is asked of etcd.
			if _, err := kube.CoreV1().Namespaces().Get(ctx, s.In(), metav1.GetOptions{}); err != nil {
				unanswered++
			}
			const enough = 4
			return fmt.Sprintf("%d requests without an answer", unanswered), unanswered >= enough
		}, func() { s.must(syscall.Kill(pid, syscall.SIGCONT)) }
	}
}

// leaderFrozen stops the replica that has the lease until the other one has it, as
// the first will find when it goes on.
func leaderFrozen(s *stage) (func(context.Context) (string, bool), func()) {
	before := -1
	s.eventually("a replica leads", func(ctx context.Context) (string, bool) {
		before = s.w.leader(ctx)
		return "none does", before >= 0
	})
	leader := s.w.replicas[before]
	was := leader.Starts()
	s.must(leader.signal(syscall.SIGSTOP))
	return func(ctx context.Context) (string, bool) {
			leads := s.w.leader(ctx)
			return fmt.Sprintf("replica %d leads", leads), leads >= 0 && leads != before
		}, func() {
			s.must(leader.signal(syscall.SIGCONT))
			s.eventually("the frozen replica ends, for it has lost the lease", func(context.Context) (string, bool) {
				return fmt.Sprintf("started again %d times", leader.Starts()-was), leader.Starts() > was
			})
			// The fixtures know by this whom to start again.
			log, err := os.ReadFile(leader.LogPath())
			s.must(err)
			if !bytes.Contains(log, []byte(fixture.LeaseLost)) {
				s.t.Errorf("its log does not say %q", fixture.LeaseLost)
			}
		}
}

// replicasKilled kills both, again and again: one of them leads, and one is asked.
func replicasKilled(s *stage) (func(context.Context) (string, bool), func()) {
	was := [2]int{}
	for i, r := range s.w.replicas {
		was[i] = r.Starts()
		s.must(r.signal(syscall.SIGKILL))
	}
	const kills = 2
	return func(context.Context) (string, bool) {
		var seen [2]int
		for i, r := range s.w.replicas {
			if seen[i] = r.Starts() - was[i]; seen[i] > 0 && seen[i] < kills {
				// It may be gone already, on its way to the next start.
				_ = r.signal(syscall.SIGKILL)
			}
		}
		return fmt.Sprintf("started again %v times", seen), slices.Min(seen[:]) >= kills
	}, func() {}
}

func certificateExpired(s *stage) (func(context.Context) (string, bool), func()) {
	before, err := s.w.Guard.ServedCertificate()
	s.must(err)
	s.must(s.w.Guard.ExpireCertificate(s.t.Context()))
	return func(context.Context) (string, bool) {
			now, err := s.w.Guard.ServedCertificate()
			if err != nil || now == before {
				return fmt.Sprintf("the old one is served (%v)", err), false
			}
			// Who verifies does not call: the API server logs why and answers 500. It
			// keeps connections that it has trusted before.
			return "the new one is trusted", !s.w.Guard.Serves()
		}, func() {
			s.must(s.w.Guard.ReplaceCertificate(s.t.Context()))
		}
}

func (s *stage) kube() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(s.w.Cluster.Config())
	s.must(err)
	return client
}
