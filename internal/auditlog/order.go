package auditlog

import (
	"cmp"
	"math"
	"slices"
)

// order sorts the versions by resourceVersion, and places what has none.
func (l *Log) order() {
	l.place()
	slices.SortStableFunc(l.versions, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.rv, b.rv), cmp.Compare(a.what, b.what), cmp.Compare(a.done, b.done))
	})
}

// place gives each delete without a resourceVersion that of the first write that is known to be later. after, kept in its
// generation, is the last one that is known to be earlier.
func (l *Log) place() {
	byDone, byReceived, newest := l.indices()
	for i := range l.versions {
		v := &l.versions[i]
		if v.what != goneUnordered {
			continue
		}
		lo := byDone.newestBefore(v.received - slack)
		hi := byReceived.oldestAfter(v.done + slack)
		lo = max(lo, newest[v.object])
		if hi <= lo {
			hi = lo + 1
		}
		v.rv, v.generation = hi, int64(min(lo, math.MaxInt64))
	}
}

// extremes answers, for times in order, which is the greatest resourceVersion up to one, or the least from one on.
type extremes struct {
	times []int64
	rvs   []uint64
}

func (l *Log) indices() (byDone, byReceived extremes, newest map[*object]uint64) {
	type moment struct {
		at int64
		rv uint64
	}
	newest = map[*object]uint64{}
	var done, received []moment
	for i := range l.versions {
		v := &l.versions[i]
		if v.rv != 0 {
			newest[v.object] = max(newest[v.object], v.rv)
		}
		// What is over carries the resourceVersion of the version before it.
		if v.what != goneUnordered {
			done, received = append(done, moment{v.done, v.rv}), append(received, moment{v.received, v.rv})
		}
	}
	byTime := func(a, b moment) int { return cmp.Compare(a.at, b.at) }
	slices.SortFunc(done, byTime)
	slices.SortFunc(received, byTime)
	greatest := uint64(0)
	for _, m := range done {
		greatest = max(greatest, m.rv)
		byDone.times, byDone.rvs = append(byDone.times, m.at), append(byDone.rvs, greatest)
	}
	least := uint64(math.MaxUint64)
	for i := len(received) - 1; i >= 0; i-- {
		least = min(least, received[i].rv)
		received[i].rv = least
	}
	for _, m := range received {
		byReceived.times, byReceived.rvs = append(byReceived.times, m.at), append(byReceived.rvs, m.rv)
	}
	return byDone, byReceived, newest
}

func (x extremes) newestBefore(at int64) uint64 {
	i, _ := slices.BinarySearch(x.times, at)
	if i == 0 {
		return 0
	}
	return x.rvs[i-1]
}

func (x extremes) oldestAfter(at int64) uint64 {
	i, _ := slices.BinarySearch(x.times, at+1)
	if i == len(x.times) {
		return 0
	}
	return x.rvs[i]
}
