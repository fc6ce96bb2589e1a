package agentsandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var errAway = errors.New("etcd is away")

// question is one that the platform answers by what is stored.
type question struct {
	stored []*unstructured.Unstructured
	ask    func(context.Context, *Platform) error
	// understood are those of what is read whose spec has to be understood.
	understood []string
}

func questions() map[string]question {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(template)
	cold := builders.MakeColdStart(claim, template).Obj()
	alpha := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	bare := barePod(template)
	given := released(bare, alpha)
	warm := builders.MakeColdStart(alpha, template).PodName("python-abc").Obj()
	nobody := builders.ControllerRef(claim)
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"

	judged := func(op admissionv1.Operation, old, obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			w, _ := p.Classify(op, old, obj)
			_, err := p.Snapshot(ctx, w)
			return err
		}
	}
	looked := func(op freshness.Operation, obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			_, err := p.Snapshot(ctx, platform.Write{Operation: op, New: obj})
			return err
		}
	}
	created := func(obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			_, err := p.NewSandbox(ctx, obj)
			return err
		}
	}
	stamped := func(obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			_, err := p.PodRevision(ctx, obj)
			return err
		}
	}
	all := []*unstructured.Unstructured{claim, testPool, template}
	old := []*unstructured.Unstructured{alpha, testPool, template}
	of, inPod := []string{"sandboxtemplate/python"}, []string{"sandboxtemplate/python", "pod/python-abc"}
	return map[string]question{
		"a bind":                  {append(all, pod), judged(admissionv1.Update, member, builders.Bound(member, claim, template).Obj()), inPod},
		"a cold start":            {all, judged(admissionv1.Create, nil, cold), of},
		"a cold start in a Pod":   {append(old, given), judged(admissionv1.Create, nil, warm), inPod},
		"a birth":                 {all, judged(admissionv1.Create, nil, member), of},
		"a stranger's controller": {all, judged(admissionv1.Update, member, builders.SandboxFrom(member).Owners(nobody).Obj()), nil},
		"a member":                {append(all, pod), looked(freshness.Idle, member), inPod},
		"a Pod that is taken":     {old, judged(admissionv1.Update, bare, given), of},
		"a Pod that was taken":    {old, looked(freshness.Released, given), of},
		"a Pod that is a member":  {old, looked(freshness.Idle, bare), of},
		"the stamp of a Sandbox":  {all, created(cold), of},
		"the stamp of a member":   {all, created(member), of},
		"the stamp of its Pod":    {append(all, member), stamped(pod), []string{"sandboxtemplate/python", "sandbox/python-abc"}},
		"the stamp of a bare Pod": {old, stamped(builders.PodFrom(bare).Unset("spec", "nodeName").Obj()), of},
		"who enforces": {all, func(ctx context.Context, p *Platform) error {
			_, err := p.EnforcementFor(ctx, "ns", "c1")
			return err
		}, nil},
	}
}

// asked asks, with the claims that a list shows, and returns what was read.
func (q question) asked(t *testing.T, fail string, p func(*Platform, *store)) ([]string, error) {
	t.Helper()
	s := newStore(q.stored...)
	s.fail[fail] = errAway
	made := newPlatform(s, nil)
	made.ByUID = liveread.NewReader(byUID{claims: q.stored}, nil)
	if p != nil {
		p(made, s)
	}
	err := q.ask(t.Context(), made)
	// The namespace may still be read when the answer is there.
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.read), err
}

// Whatever is read for an answer may fail to be read. Nothing is decided then.
func TestAReadThatFailsDecidesNothing(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			read, err := q.asked(t, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range slices.Compact(slices.Sorted(slices.Values(read))) {
				// How the namespace fails is for the mode to tell.
				if key == "namespace/ns" {
					continue
				}
				if _, err := q.asked(t, key, nil); !errors.Is(err, errAway) {
					t.Errorf("without %s: error %v, want one that wraps the read's", key, err)
				}
			}
		})
	}
}

// undiscovered knows no kind.
type undiscovered struct{}

func (undiscovered) Resource(context.Context, schema.GroupResource) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, errAway
}

// unpooled knows every kind but pools.
type unpooled struct{ *store }

func (u unpooled) Resource(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	if gr == Pools {
		return schema.GroupVersionResource{}, errAway
	}
	return u.store.Resource(ctx, gr)
}

// By pools is told whether a release starts anything in a Pod that is there: also where the
// start depends on no pool.
func TestAStartOfAnUnknownReleaseIsNotDecided(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	pod := builders.PodFrom(released(barePod(template), claim)).Unset("metadata", "generateName").Obj()
	s := newStore(claim, template, pod)
	p := newPlatform(s, nil)
	p.Resolver = unpooled{s}
	w, _ := p.Classify(admissionv1.Create, nil, builders.MakeColdStart(claim, template).PodName("python-abc").Obj())
	if f, err := p.Snapshot(t.Context(), w); !errors.Is(err, errAway) {
		t.Errorf("a snapshot of a %s, error %v, want one that wraps discovery's", f.Operation, err)
	}
}

// lost has forgotten all revisions.
type lost struct{}

func (lost) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	return nil, errAway
}

func TestWhatCannotBeFoundDecidesNothing(t *testing.T) {
	for name, q := range questions() {
		t.Run(name, func(t *testing.T) {
			if _, err := q.asked(t, "", func(p *Platform, _ *store) { p.Resolver = undiscovered{} }); !errors.Is(err, errAway) {
				t.Errorf("without discovery: error %v, want one that wraps it", err)
			}
			if q.understood == nil {
				return
			}
			if _, err := q.asked(t, "", func(p *Platform, _ *store) { p.History = lost{} }); !errors.Is(err, errAway) {
				t.Errorf("without a history: error %v, want one that wraps its own", err)
			}
		})
	}
}

// A template, a Sandbox or a Pod that nobody understands is no reason to take it
// for another one.
func TestWhatNobodyUnderstandsDecidesNothing(t *testing.T) {
	for name, q := range questions() {
		for _, key := range q.understood {
			for what, path := range map[string][]string{"spec": {"spec"}, "containers": containersIn(key)} {
				t.Run(name+", "+key+", "+what, func(t *testing.T) {
					_, err := q.asked(t, "", func(_ *Platform, s *store) {
						broken := s.objs[key].DeepCopy()
						if err := unstructured.SetNestedField(broken.Object, "nonsense", path...); err != nil {
							t.Fatal(err)
						}
						s.objs[key] = broken
					})
					if err == nil {
						t.Error("no error")
					}
				})
			}
		}
	}
}

func containersIn(key string) []string {
	if strings.HasPrefix(key, "pod/") {
		return []string{"spec", "containers"}
	}
	return []string{"spec", "podTemplate", "spec", "containers"}
}

// What is written is understood, too, before it is judged.
func TestAWriteThatNobodyUnderstandsDecidesNothing(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	member, pod := running(template)
	bound, cold := builders.Bound(member, claim, template).Obj(), builders.MakeColdStart(claim, template).Obj()
	bare := barePod(template)
	given := released(bare, claim)
	broken := func(obj *unstructured.Unstructured) *unstructured.Unstructured {
		return builders.SandboxFrom(obj).Set("nonsense", "spec").Obj()
	}
	orphan := builders.PodFrom(broken(pod)).Owners(builders.ControllerRef(builders.SandboxFrom(member).Name("gone").Obj())).Obj()
	p := newPlatform(newStore(claim, testPool, template, member, pod), nil)
	judge := func(w platform.Write) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := p.Snapshot(ctx, w)
			return err
		}
	}
	write := func(op freshness.Operation, old, obj *unstructured.Unstructured) func(context.Context) error {
		return judge(platform.Write{Operation: op, Old: old, New: obj})
	}
	stamp := func(of func(context.Context, *unstructured.Unstructured) (platform.Stamp, error), obj *unstructured.Unstructured) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := of(ctx, obj)
			return err
		}
	}
	for name, ask := range map[string]func(context.Context) error{
		"a bind of it":             write(freshness.Bind, broken(member), bound),
		"a bind that breaks it":    write(freshness.Bind, member, broken(bound)),
		"a cold start":             write(freshness.ColdStart, nil, broken(cold)),
		"a birth":                  write(freshness.Birth, nil, broken(member)),
		"a release of it":          write(freshness.Release, broken(bare), given),
		"a release that breaks it": write(freshness.Release, bare, broken(given)),
		"the birth of a bare Pod":  write(freshness.Birth, nil, broken(bare)),
		"a stamp":                  stamp(p.NewSandbox, broken(cold)),
		"a revision":               stamp(p.SandboxRevision, broken(cold)),
		"the stamp of a Pod":       stamp(p.PodRevision, broken(pod)),
		"that of an orphan":        stamp(p.PodRevision, orphan),
		"the stamp of a bare Pod":  stamp(p.PodRevision, broken(bare)),
		"a bare Pod as it is": func(ctx context.Context) error {
			_, err := p.InspectBarePod(ctx, testPool, template, broken(bare))
			return err
		},
		"a bare Pod whose template is broken": func(ctx context.Context) error {
			_, err := p.InspectBarePod(ctx, testPool, broken(template), bare)
			return err
		},
	} {
		if err := ask(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got := p.Question(platform.Write{Operation: freshness.ColdStart, New: broken(cold)}); got != (platform.Question{}) {
		t.Errorf("it makes the question %x", got)
	}
}

func TestAClaimThatNobodyUnderstandsDecidesNothing(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").VolumeClaimPolicy("Allowed").Obj()
	claim := builders.MakeClaim("ns", "c1").VolumeClaim("data", "much").Obj()
	p := newPlatform(newStore(claim, testPool, template), nil)
	w, _ := p.Classify(admissionv1.Create, nil, builders.MakeColdStart(claim, template).Obj())
	if _, err := p.Snapshot(t.Context(), w); err == nil {
		t.Error("no error")
	}
}

// What waits for its turn until nobody waits for the answer any more is not decided.
func TestATurnThatNeverComesDecidesNothing(t *testing.T) {
	all := questions()
	// That of a Sandbox that was stamped is found without more.
	stamped := all["the stamp of its Pod"]
	last := len(stamped.stored) - 1
	stamped.stored = append(slices.Clone(stamped.stored[:last]), builders.SandboxFrom(stamped.stored[last]).Label(settings.StampKey, "v1-said").Obj())
	all["the stamp of the Pod of a stamped one"] = stamped
	for name, q := range all {
		// Those take no time.
		if q.understood == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ask := q.ask
				q.ask = func(_ context.Context, p *Platform) error { return ask(ctx, p) }
				if _, err := q.asked(t, "", func(p *Platform, _ *store) { p.Turns = fair.NewTurns(0, 0) }); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want that the time is up", err)
				}
			})
		})
	}
}

// endsWhenAsked ends a context when somebody asks for a history.
type endsWhenAsked struct {
	history
	end context.CancelFunc
}

func (h endsWhenAsked) Revisions(ctx context.Context, template *unstructured.Unstructured) ([]platform.Recorded, error) {
	h.end()
	return h.history.Revisions(ctx, template)
}

// An answer that nobody waits for any more is not looked for.
func TestAnAnswerThatNobodyWaitsForIsNotGiven(t *testing.T) {
	template, old := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj(), builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	member, pod := running(old)
	cold := builders.MakeColdStart(claim, old).Obj()
	for name, tc := range map[string]struct {
		sandbox, pod *unstructured.Unstructured
	}{
		"a member":              {sandbox: member},
		"a cold start":          {sandbox: cold},
		"a cold start in a Pod": {sandbox: builders.SandboxFrom(cold).PodName("python-abc").Obj()},
		"a Pod":                 {pod: pod},
		"a bare Pod":            {pod: barePod(old)},
	} {
		for turns, shared := range map[string]*fair.Turns{"alone": nil, "beside others": fair.NewTurns(1, 1)} {
			t.Run(name+", "+turns, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				p := newPlatform(newStore(claim, testPool, template, member), nil)
				p.History, p.Turns = endsWhenAsked{history{template}, end}, shared
				find, obj := p.NewSandbox, tc.sandbox
				if tc.pod != nil {
					find, obj = p.PodRevision, tc.pod
				}
				stamp, err := find(ctx, obj)
				if !errors.Is(err, context.Canceled) || stamp.Hash != "" || stamp.Refused != nil {
					t.Errorf("stamp %q, refused %v, error %v, want none but that it was given up", stamp.Hash, stamp.Refused, err)
				}
			})
		}
	}
}
