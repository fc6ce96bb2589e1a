package auditlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/freshbind/freshbind/internal/checker"
)

const (
	// slack is by how much the clocks of API servers may differ.
	slack = int64(100 * time.Millisecond / time.Microsecond)
	// step is after how many writes the history is told how far it is, and forgets what is over.
	step = 10_000
)

// ErrNothing means that there is no write in the log that could be judged.
var ErrNothing = errors.New("no write to agent-sandbox's objects is in it with what was stored")

// History returns what was stored, for the checker, and what is missing of it. Calling it ends the log.
func (l *Log) History(options checker.Options) (*checker.History, Missing, error) {
	missing := l.coverage.missing()
	options.Partial = true
	h := checker.NewHistory(options)
	l.order()
	if len(l.versions) == 0 {
		return h, missing, fmt.Errorf("%w", ErrNothing)
	}
	f := feeder{log: l, h: h, lost: l.lostByName()}
	if err := f.run(); err != nil {
		return nil, missing, err
	}
	return h, missing, nil
}

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

type objectName struct {
	resource        checker.Resource
	namespace, name string
}

func (l *Log) lostByName() map[objectName][]lostWrite {
	out := map[objectName][]lostWrite{}
	for _, w := range l.lost {
		key := objectName{w.resource, w.namespace, w.name}
		out[key] = append(out[key], w)
	}
	return out
}

// feeder tells a history what happened.
type feeder struct {
	log    *Log
	h      *checker.History
	lost   map[objectName][]lostWrite
	behind checker.RV
	// texts are those of the versions that are told now, and decoded the specs that several of them have, of which room
	// says how many bytes more may be kept.
	texts   map[uint32]string
	decoded map[uint32]map[string]any
	room    int
}

// maxDecoded bounds the specs, in bytes of JSON, that are kept decoded at a time: those take several times as much.
const maxDecoded = 4 << 20

func (f *feeder) run() error {
	// From here on, versions alone hold what was read, and each lets go of it when it has been told.
	f.log.objects, f.log.specs = nil, nil
	start := checker.RV(strconv.FormatUint(f.log.versions[0].rv, 10))
	// What was there before the log began has no CREATE in it. Its first version is a start, and not the event that it
	// looks like.
	if err := f.before(); err != nil {
		return err
	}
	for _, r := range append(checker.Resources(), checker.Namespaces) {
		if err := f.h.Add(checker.Event{Type: checker.Synced, Resource: r, RV: start, SeenAt: f.log.coverage.since}); err != nil {
			return err
		}
	}
	for at := 0; at < len(f.log.versions); at += step {
		some := f.log.versions[at:min(at+step, len(f.log.versions))]
		if err := f.all(some); err != nil {
			return err
		}
		if err := f.progress(&some[len(some)-1], at+step >= len(f.log.versions)); err != nil {
			return err
		}
	}
	return nil
}

// before tells of what was there before the log began.
func (f *feeder) before() error {
	var first []*version
	for i := range f.log.versions {
		v := &f.log.versions[i]
		if v.object.last == nil && v.what == changed && v.object.births == 0 && v.object.created.Before(f.log.coverage.since.Truncate(time.Second)) {
			first = append(first, v)
			v.object.last = v
		}
	}
	for some := range slices.Chunk(first, step) {
		if err := f.read(some); err != nil {
			return err
		}
		for _, v := range some {
			if err := f.tell(v, checker.Listed); err != nil {
				return err
			}
		}
	}
	return nil
}

// all tells of versions that follow each other.
func (f *feeder) all(some []version) error {
	left := make([]*version, 0, len(some))
	for i := range some {
		if v := &some[i]; v.object.last != v {
			left = append(left, v)
		}
	}
	if err := f.read(left); err != nil {
		return err
	}
	for _, v := range left {
		if err := f.next(v); err != nil {
			return err
		}
	}
	return nil
}

// read gets what is known of the versions that are told next.
func (f *feeder) read(some []*version) (err error) {
	numbers := make([]uint32, 0, 2*len(some))
	for _, v := range some {
		numbers = append(numbers, v.details, v.spec)
	}
	f.decoded, f.room = map[uint32]map[string]any{}, maxDecoded
	f.texts, err = f.log.texts.read(numbers)
	return err
}

// next tells of a version as what it is: new, changed, gone, or known only to be so from now on.
func (f *feeder) next(v *version) error {
	o := v.object
	prev := o.last
	if prev == nil && v.what == goneUnordered {
		return nil // nothing else is known of it
	}
	what := checker.Modified
	switch {
	case v.what == goneUnordered:
		what = checker.Deleted
	case prev == nil && v.what == created:
		what = checker.Added
	case prev == nil, f.missed(prev, v):
		what = checker.Listed
	}
	if err := f.tell(v, what); err != nil {
		return err
	}
	o.last = v
	return nil
}

// missed reports whether there was a write between two versions of which the log does not hold the result: one that it
// names, or one that the generation counts.
func (f *feeder) missed(prev, v *version) bool {
	o := v.object
	if o.resource != checker.Pods && prev.generation > 0 && v.generation > prev.generation+1 {
		return true
	}
	return slices.ContainsFunc(f.lost[objectName{o.resource, o.namespace, o.name}], func(w lostWrite) bool {
		return w.received <= v.done && w.done >= prev.received
	})
}

func (f *feeder) progress(v *version, end bool) error {
	rv := checker.RV(strconv.FormatUint(v.rv, 10))
	for _, r := range checker.Resources() {
		if err := f.h.Add(checker.Event{Type: checker.Progress, Resource: r, RV: rv, SeenAt: time.UnixMicro(v.done)}); err != nil {
			return err
		}
	}
	if f.behind != "" && !end {
		f.h.Prune(f.behind)
	}
	f.behind = rv
	return nil
}

func (f *feeder) tell(v *version, what checker.EventType) error {
	e := checker.Event{Type: what, SeenAt: time.UnixMicro(v.done), By: *v.by}
	if v.what == goneUnordered {
		e.After = checker.RV(strconv.FormatInt(v.generation, 10))
	}
	u, err := f.object(v)
	if err != nil {
		return err
	}
	e.Object = u
	if v.spec != 0 {
		e.SpecKey = strconv.FormatUint(uint64(v.spec), 36)
		if v.object.resource == checker.Pods {
			e.PodSpec = f.texts[v.spec]
		}
	}
	if err := f.h.Add(e); err != nil {
		return fmt.Errorf("%s %s/%s: %w", v.object.resource, v.object.namespace, v.object.name, err)
	}
	return nil
}

// object is the version as the checker takes it: what it reads, and nothing else.
func (f *feeder) object(v *version) (*unstructured.Unstructured, error) {
	o := v.object
	apiVersion := o.apiVersion
	if apiVersion == "" {
		apiVersion = "v1"
		if g := groups[o.resource]; g != "" {
			apiVersion = g + "/v1"
		}
	}
	metadata := map[string]any{"name": o.name, "uid": o.uid, "resourceVersion": strconv.FormatUint(v.rv, 10)}
	if o.namespace != "" {
		metadata["namespace"] = o.namespace
	}
	if !o.created.IsZero() {
		metadata["creationTimestamp"] = o.created.UTC().Format(time.RFC3339)
	}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kinds[o.resource], "metadata": metadata}}
	if v.what != goneUnordered {
		metadata["generation"] = v.generation
	}
	if v.details != 0 {
		d, err := unpack(f.texts[v.details])
		if err != nil {
			return nil, err
		}
		d.into(metadata)
		if status := d.status.into(o.resource); status != nil {
			out.Object["status"] = status
		}
	}
	if v.spec != 0 {
		spec, err := f.spec(v)
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s at resourceVersion %d: spec: %w", o.resource, o.namespace, o.name, v.rv, err)
		}
		out.Object["spec"] = spec
	}
	return out, nil
}

func (d *details) into(metadata map[string]any) {
	for key, list := range map[string][]pair{"labels": d.labels, "annotations": d.annotations} {
		if len(list) == 0 {
			continue
		}
		values := make(map[string]any, len(list))
		for _, p := range list {
			values[p.key] = p.value
		}
		metadata[key] = values
	}
	if d.deleting != "" {
		metadata["deletionTimestamp"] = d.deleting
	}
	if len(d.owners) == 0 {
		return
	}
	refs := make([]any, len(d.owners))
	for i, o := range d.owners {
		ref := map[string]any{"apiVersion": o.apiVersion, "kind": o.kind, "name": o.name, "uid": o.uid}
		if o.controller != nil {
			ref["controller"] = *o.controller
		}
		refs[i] = ref
	}
	metadata["ownerReferences"] = refs
}

// spec returns the spec as the checker reads it, which does not change it.
func (f *feeder) spec(v *version) (map[string]any, error) {
	if known, ok := f.decoded[v.spec]; ok {
		return known, nil
	}
	raw := f.texts[v.spec]
	if !json.Valid([]byte(raw)) {
		return nil, errors.New("it is no JSON")
	}
	if v.object.resource == checker.Pods {
		var err error
		if raw, err = podPart(raw); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
	}
	var out map[string]any
	if err := utiljson.Unmarshal([]byte(raw), &out); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if f.log.uses[v.spec] > 0 && len(raw) <= f.room {
		f.decoded[v.spec] = out
		f.room -= len(raw)
	}
	return out, nil
}

// podPart is what the checker reads of a Pod's spec apart from its text.
func podPart(spec string) (string, error) {
	var parts []string
	err := fields([]byte(spec), func(key, value []byte) error {
		if string(key) == "nodeName" || string(key) == "ephemeralContainers" {
			parts = append(parts, `"`+string(key)+`":`+string(value))
		}
		return nil
	})
	return "{" + strings.Join(parts, ",") + "}", err
}

func (s status) into(r checker.Resource) map[string]any {
	if s == (status{}) {
		return nil
	}
	out := map[string]any{}
	if s.ready {
		out["conditions"] = []any{map[string]any{"type": "Ready", "status": "True"}}
	}
	if s.digest != 0 {
		out["digest"] = strconv.FormatUint(s.digest, 16)
	}
	if s.phase != "" {
		out["phase"] = s.phase
	}
	if s.ips != "" {
		out["podIPs"] = listed(s.ips, r)
	}
	return out
}
