package agentsandbox

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
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
