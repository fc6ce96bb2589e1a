package auditlog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

const (
	ns   = "prod"
	pool = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"
)

var begin = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// logBuilder writes an audit log as kube-apiserver does: every write raises the resourceVersion by one and the clock by a second.
type logBuilder struct {
	t     testing.TB
	rv    int64
	now   time.Time
	lines []string
	level string // of what is written from now on; RequestResponse if empty
	user  string
}

func newLogBuilder(t testing.TB) *logBuilder {
	return &logBuilder{t: t, rv: 100, now: begin, user: pool}
}

type stamped interface {
	Obj() *unstructured.Unstructured
}

func (x *logBuilder) event(verb string, u *unstructured.Unstructured, code int, response any) {
	x.t.Helper()
	x.now = x.now.Add(time.Second)
	resource := map[string]string{"SandboxTemplate": "sandboxtemplates", "SandboxWarmPool": "sandboxwarmpools", "SandboxClaim": "sandboxclaims",
		"Sandbox": "sandboxes", "SandboxSet": "sandboxsets", "Pod": "pods", "Namespace": "namespaces"}[u.GetKind()]
	e := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": fmt.Sprint(len(x.lines)),
		"stage": "ResponseComplete", "requestURI": "/apis/", "verb": verb, "user": map[string]any{"username": x.user},
		"objectRef": map[string]any{"resource": resource, "namespace": u.GetNamespace(), "name": u.GetName(),
			"apiGroup": u.GroupVersionKind().Group, "apiVersion": u.GroupVersionKind().Version},
		"responseStatus": map[string]any{"metadata": map[string]any{}, "code": code}, "responseObject": response,
		"requestReceivedTimestamp": x.now.Format(time.RFC3339Nano), "stageTimestamp": x.now.Add(10 * time.Millisecond).Format(time.RFC3339Nano),
	}
	if x.level != "" {
		e["level"] = x.level
		delete(e, "responseObject")
	}
	line, err := json.Marshal(e)
	if err != nil {
		x.t.Fatal(err)
	}
	x.lines = append(x.lines, string(line))
}

func (x *logBuilder) write(verb string, code int, o stamped) *unstructured.Unstructured {
	x.t.Helper()
	u := o.Obj()
	x.rv++
	u.SetResourceVersion(fmt.Sprint(x.rv))
	x.event(verb, u, code, u.Object)
	return u
}

// add and mod store; born fills in when it was created.
func (x *logBuilder) add(o stamped) *unstructured.Unstructured {
	x.t.Helper()
	u := o.Obj()
	u.SetCreationTimestamp(metav1.NewTime(x.now.Add(time.Second)))
	return x.write("create", 201, copied{u})
}

func (x *logBuilder) mod(o stamped) *unstructured.Unstructured { return x.write("patch", 200, o) }

// del is the answer to a DELETE of a custom resource: no resourceVersion.
func (x *logBuilder) del(u *unstructured.Unstructured) {
	x.t.Helper()
	x.rv++
	x.event("delete", u, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success",
		"details": map[string]any{"name": u.GetName(), "uid": string(u.GetUID())}})
}

func (x *logBuilder) text() string { return strings.Join(x.lines, "\n") + "\n" }

type copied struct{ u *unstructured.Unstructured }

func (c copied) Obj() *unstructured.Unstructured { return c.u.DeepCopy() }

// cast is a template, a pool of it and a ready member with its Pod.
type cast struct {
	*logBuilder
	template, pool, member, pod, claim *unstructured.Unstructured
}

func newCast(t testing.TB) *cast {
	x := newLogBuilder(t)
	c := &cast{logBuilder: x}
	c.template = x.add(builders.MakeTemplate(ns, "python"))
	c.pool = x.add(builders.MakePool(ns, "python").Strategy("Recreate"))
	c.birth("m1")
	return c
}

func (c *cast) birth(name string) {
	c.member = c.add(builders.MakeMember(c.pool, c.template).Name(name))
	c.pod = c.add(builders.MakePod(c.member).Stored("node").Set([]any{map[string]any{"ip": "10.0.0.1"}}, "status", "podIPs"))
	c.member = c.mod(builders.SandboxFrom(c.member).Ready(true).Set([]any{"10.0.0.1"}, "status", "podIPs"))
}

func (c *cast) update(image string) {
	next := builders.TemplateFrom(c.template).Image(image)
	c.template = c.mod(next.Generation(c.template.GetGeneration() + 1))
}

func (c *cast) serve(claim string) {
	c.claim = c.add(builders.MakeClaim(ns, claim))
	c.claim = c.mod(builders.ClaimFrom(c.claim).Names(c.member.GetName()))
	c.member = c.mod(builders.Bound(c.member, c.claim, c.template))
	c.claim = c.mod(builders.ClaimFrom(c.claim).Ready(true))
}

// stale is the log of a bind that everything convicts.
func stale(t testing.TB) *cast {
	c := newCast(t)
	c.update("sandbox:v2")
	c.serve("c1")
	return c
}

func read(t testing.TB, texts ...string) *Log {
	t.Helper()
	l := New()
	for i, text := range texts {
		if err := l.Read(fmt.Sprintf("audit-%d.log", i), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func judge(t testing.TB, texts ...string) (verdicts []string, missing Missing) {
	t.Helper()
	h, missing, err := read(t, texts...).History("", checker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range h.Judge().Binds {
		line := b.Claim.Name + ":"
		for _, f := range b.Findings {
			line += " " + string(f.Class)
		}
		if len(b.Findings) == 0 {
			line += " " + string(b.Class)
		}
		verdicts = append(verdicts, line)
	}
	return verdicts, missing
}

func TestVerdicts(t *testing.T) {
	cases := map[string]struct {
		tell func(c *cast)
		want []string
	}{
		"fresh":                      {tell: func(c *cast) { c.serve("c1") }, want: []string{"c1: Fresh"}},
		"stale":                      {tell: func(c *cast) { c.update("sandbox:v2"); c.serve("c1") }, want: []string{"c1: Stale"}},
		"cold, fresh":                {tell: func(c *cast) { c.cold() }, want: []string{"c1: Fresh"}},
		"a dry run is nothing":       {tell: func(c *cast) { c.dryRun(); c.serve("c1") }, want: []string{"c1: Fresh"}},
		"a refused write is nothing": {tell: func(c *cast) { c.refused(); c.serve("c1") }, want: []string{"c1: Fresh"}},
		"killed by the pool's controller": {want: []string{"c1: KilledAfterBind"}, tell: func(c *cast) {
			c.serve("c1")
			c.del(c.member)
		}},
		"its Pod killed by the pool's controller": {want: []string{"c1: KilledAfterBind"}, tell: func(c *cast) {
			c.serve("c1")
			c.write("delete", 200, builders.PodFrom(c.pod).Deleting(c.now).Set(30, "metadata", "deletionGracePeriodSeconds"))
		}},
		"deleted by somebody else": {want: []string{"c1: Fresh"}, tell: func(c *cast) {
			c.serve("c1")
			c.user = "alice"
			c.del(c.member)
		}},
		"deleted after its claim": {want: []string{"c1: Fresh"}, tell: func(c *cast) {
			c.serve("c1")
			c.user = "alice"
			c.del(c.claim)
			c.user = pool
			c.mod(builders.MakePool(ns, "other"))
			c.del(c.member)
		}},
		"deleted when its time was up": {want: []string{"c1: Fresh"}, tell: func(c *cast) {
			c.serve("c1")
			c.mod(builders.ClaimFrom(c.claim).Set(begin.Format(time.RFC3339), "spec", "lifecycle", "shutdownTime").Generation(2))
			c.del(c.member)
		}},
		"a dead Pod": {want: []string{"c1: DeadMember"}, tell: func(c *cast) {
			c.pod = c.mod(builders.PodFrom(c.pod).Phase("Failed"))
			c.serve("c1")
		}},
		"a Pod that somebody worked in": {want: []string{"c1: UsedMember"}, tell: func(c *cast) {
			c.pod = c.mod(builders.PodFrom(c.pod).Set([]any{map[string]any{"name": "debug"}}, "spec", "ephemeralContainers"))
			c.serve("c1")
		}},
		"used before": {want: []string{"c1: Fresh", "c2: UsedMember"}, tell: func(c *cast) {
			c.serve("c1")
			c.member = c.mod(builders.SandboxFrom(c.member).Owners(builders.ControllerRef(c.pool)))
			c.serve("c2")
		}},
		"a version of the template that the log skips": {want: []string{"c1: Unjudged"}, tell: func(c *cast) {
			c.claim = c.add(builders.MakeClaim(ns, "c1"))
			c.claim = c.mod(builders.ClaimFrom(c.claim).Names("m1"))
			c.member = c.mod(builders.Bound(c.member, c.claim, c.template))
			c.template = builders.TemplateFrom(c.template).Generation(2).Obj()
			c.update("sandbox:v3")
		}},
		"two DELETEs at once, of which one names no version": {want: []string{"c1: Fresh", "c1: Fresh"}, tell: func(c *cast) {
			c.serve("c1")
			c.user = "alice"
			late := c.member.DeepCopy()
			late.SetResourceVersion("")
			c.event("delete", late, 200, late.Object)
			c.now = c.now.Add(-time.Second)
			c.del(c.member)
			c.mod(builders.PoolFrom(c.pool))
			c.now = c.now.Add(time.Second)
			c.add(builders.MakeColdStart(c.claim, c.template).Name("cold"))
		}},
		"two DELETEs of a template, which comes back before the slower one is answered": {want: []string{"c1: Fresh"}, tell: func(c *cast) {
			late := c.template.DeepCopy()
			late.SetResourceVersion("")
			c.event("delete", late, 200, late.Object)
			last := &c.lines[len(c.lines)-1]
			*last = strings.Replace(*last, c.now.Add(10*time.Millisecond).Format(time.RFC3339Nano), c.now.Add(5*time.Second).Format(time.RFC3339Nano), 1)
			c.del(c.template)
			c.template = c.add(builders.MakeTemplate(ns, "python").UID("again"))
			c.birth("m2")
			c.serve("c1")
		}},
		"a second one while the first may be gone": {want: []string{"c1: Fresh", "c1: Fresh"}, tell: func(c *cast) {
			c.serve("c1")
			c.user = "alice"
			first := c.member
			c.del(first)
			c.user = pool
			c.now = c.now.Add(-time.Second) // at the same moment as the DELETE
			c.add(builders.MakeColdStart(c.claim, c.template).Name("cold"))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCast(t)
			tc.tell(c)
			got, missing := judge(t, c.text())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%v", diff, missing.Notes)
			}
		})
	}
}

func (c *cast) cold() {
	c.claim = c.add(builders.MakeClaim(ns, "c1"))
	c.add(builders.MakeColdStart(c.claim, c.template))
}

func (c *cast) dryRun() {
	c.write("patch", 200, builders.TemplateFrom(c.template).Image("sandbox:v2"))
	c.rv--
	last := &c.lines[len(c.lines)-1]
	*last = strings.Replace(*last, `"/apis/"`, `"/apis/?dryRun=All"`, 1)
}

func (c *cast) refused() {
	c.event("patch", c.template, 409, map[string]any{"kind": "Status", "status": "Failure"})
}

func TestOrderOfLinesAndFiles(t *testing.T) {
	c := stale(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(c.text())); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	shuffled := append([]string(nil), c.lines...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	half := len(c.lines) / 2
	join := func(lines []string) string { return strings.Join(lines, "\n") }
	cases := map[string][]string{
		"as written":                 {c.text()},
		"shuffled":                   {join(shuffled)},
		"compressed":                 {zipped.String()},
		"two files, the later first": {join(c.lines[half:]), join(c.lines[:half])},
		"overlapping files":          {c.text(), join(c.lines[half:])},
		"a partial last line":        {c.text() + c.lines[0][:40]},
		"empty lines":                {strings.ReplaceAll(c.text(), "\n", "\n\n")},
		"an array":                   {"[" + strings.Join(c.lines, ",\n") + "]"},
		"one value over many lines":  {strings.ReplaceAll(c.text(), `,"`, ",\n\"")},
	}
	for name, texts := range cases {
		t.Run(name, func(t *testing.T) {
			got, missing := judge(t, texts...)
			if diff := cmp.Diff([]string{"c1: Stale"}, got); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s", diff)
			}
			if partial := name == "a partial last line"; partial != (len(missing.Notes) == 2) {
				t.Errorf("missing: %v", missing.Notes)
			}
		})
	}
}
