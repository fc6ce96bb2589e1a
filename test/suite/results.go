package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/testevents"
)

// result is how a test, or a subtest, ended the last time that it ran.
type result struct {
	// pkg is a folder below test/.
	pkg, test string
	// outcome is pass, fail or skip; what never ended has none.
	outcome string
	took    time.Duration
	// last is when something was heard of it last.
	last time.Time
	// kubernetes and release are what it ran on, "" where it does not say so.
	kubernetes, release string
}

type testID struct{ pkg, test string }

// results are those of one run of tests.
type results map[testID]*result

// read adds what `go test -json` wrote.
func (rs results) read(r io.Reader) error {
	return testevents.Read(r, func(e testevents.Event) error {
		if _, pkg, ours := strings.Cut(e.Package, "/freshbind/test/"); ours && e.Test != "" {
			rs.add(testID{pkg, e.Test}, e)
		}
		return nil
	})
}

func (rs results) add(id testID, e testevents.Event) {
	r := rs[id]
	if r == nil || e.Action == "run" {
		r = &result{pkg: id.pkg, test: id.test}
		rs[id] = r
	}
	r.last = e.Time
	switch {
	case e.Ended():
		r.outcome, r.took = e.Action, time.Duration(e.Elapsed*float64(time.Second))
	case e.Key == controlplane.AttrKubernetes:
		r.kubernetes = e.Value
	case e.Key == controlplane.AttrRelease:
		r.release = e.Value
	}
}

// of returns what a row's test came to, one result for each release that it ran with.
// Its subtests count through it: a test fails when one of them does.
func (rs results) of(r row) []result {
	var names []string
	for id := range rs {
		if id.pkg == r.pkg && r.covers(id.test) {
			names = append(names, id.test)
		}
	}
	// A test comes before its subtests then.
	slices.Sort(names)
	byRelease := map[string]result{}
	for _, name := range names {
		one := rs.placed(*rs[testID{r.pkg, name}])
		if first, ok := byRelease[one.release]; ok {
			one = first.with(one)
		}
		byRelease[one.release] = one
	}
	around, ok := byRelease[""]
	delete(byRelease, "")
	switch all := slices.SortedFunc(maps.Values(byRelease), func(a, b result) int { return compareReleases(a.release, b.release) }); {
	case !ok || len(all) > 1:
		return all
	case len(all) == 1:
		around.release = all[0].release
		return []result{around.with(all[0])}
	}
	return []result{around}
}

// with is what a test came to together with a subtest of it.
func (r result) with(sub result) result {
	r.kubernetes = cmp.Or(r.kubernetes, sub.kubernetes)
	if r.outcome != "fail" && (sub.outcome == "fail" || sub.outcome == "") {
		r.outcome = sub.outcome
	}
	return r
}

// covers reports whether a test is the row's, or a subtest of it.
func (r row) covers(test string) bool {
	if strings.Contains(r.test, "/") {
		return strings.HasPrefix(test, r.test)
	}
	return test == r.test || strings.HasPrefix(test, r.test+"/")
}

// placed fills where a test ran from its name and the tests around it.
func (rs results) placed(r result) result {
	for name, more := r.test, true; more; {
		if last := name[strings.LastIndex(name, "/")+1:]; isRelease(last) {
			r.release = cmp.Or(r.release, last)
		}
		if one := rs[testID{r.pkg, name}]; one != nil {
			r.release = cmp.Or(r.release, one.release)
			r.kubernetes = cmp.Or(r.kubernetes, one.kubernetes)
		}
		name, more = parent(name)
	}
	return r
}

func parent(name string) (string, bool) {
	at := strings.LastIndex(name, "/")
	return name[:max(at, 0)], at > 0
}

func isRelease(s string) bool {
	_, err := version.ParseSemantic(s)
	return err == nil
}

// latest adds what another run came to. Where both ran a test with the same versions,
// the later counts.
func latest(known, more []result) []result {
	all := slices.Clone(known)
	for _, m := range more {
		at := slices.IndexFunc(all, func(r result) bool {
			return r.test == m.test && r.release == m.release && r.kubernetes == m.kubernetes
		})
		switch {
		case at < 0:
			all = append(all, m)
		case m.last.After(all[at].last):
			all[at] = m
		}
	}
	slices.SortStableFunc(all, func(a, b result) int {
		return cmp.Or(compareReleases(a.release, b.release), compareReleases(a.kubernetes, b.kubernetes))
	})
	return all
}

// compareReleases has what is no release before those that are.
func compareReleases(a, b string) int {
	x, err := version.ParseSemantic(a)
	if err != nil {
		return strings.Compare(a, b)
	}
	if order, err := x.Compare(b); err == nil {
		return order
	}
	return 1
}
