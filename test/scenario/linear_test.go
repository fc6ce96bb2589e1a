package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/upstream"
)

// call is a write as the API server's audit log tells of it: when it came, when it was answered, and what was stored.
type call struct {
	Stage, Verb string
	ObjectRef   struct {
		Resource, Subresource, Namespace, Name string
	}
	Began    metav1.MicroTime          `json:"requestReceivedTimestamp"`
	Ended    metav1.MicroTime          `json:"stageTimestamp"`
	Response struct{ Code int }        `json:"responseStatus"`
	Stored   unstructured.Unstructured `json:"-"`
	Object   json.RawMessage           `json:"responseObject"`
}

// step is an operation on a namespace with one template: a write of its image, or a bind of a sandbox to a claim.
type step struct{ image, claim, sandbox string }

// given is the state that steps are taken in: the template's image, and which sandboxes and claims have each other.
type given struct{ image, pairs string }

// specification is what a claim's user expects, with no word about caches, resourceVersions or clocks: a bind gives the
// template's image of some moment between request and answer, a sandbox goes to one claim, and a claim gets one. It is
// the correctness condition of Herlihy and Wing (Linearizability, 1990).
var specification = porcupine.Model{
	Init: func() any { return given{} },
	Step: func(at, in, _ any) (bool, any) {
		now, s := at.(given), in.(step)
		if s.claim == "" {
			now.image = s.image
			return true, now
		}
		free := !strings.Contains(now.pairs, "<"+s.claim+"<") && !strings.Contains(now.pairs, ">"+s.sandbox+">")
		ok := free && s.image == now.image
		pairs := append(strings.Fields(now.pairs), "<"+s.claim+"<>"+s.sandbox+">")
		slices.Sort(pairs)
		now.pairs = strings.Join(pairs, " ")
		return ok, now
	},
}

// linear says whether a history can be explained, and which binds cannot, each beside all writes to the template.
func linear(history []porcupine.Operation) (whole bool, wrong []string) {
	isWrite := func(o porcupine.Operation) bool { return o.Input.(step).claim == "" }
	var writes []porcupine.Operation
	for _, o := range history {
		if isWrite(o) {
			writes = append(writes, o)
		}
	}
	for _, o := range history {
		if !isWrite(o) && !porcupine.CheckOperations(specification, append(slices.Clone(writes), o)) {
			wrong = append(wrong, o.Input.(step).claim)
		}
	}
	slices.Sort(wrong)
	return porcupine.CheckOperations(specification, history), wrong
}

// histories reads a log: what was done in each namespace, in the order of the answers.
func histories(log io.Reader) (map[string][]porcupine.Operation, error) {
	var calls []call
	for lines := json.NewDecoder(log); ; {
		var c call
		if err := lines.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if c.Stage != "ResponseComplete" || c.Verb == "delete" || c.Response.Code >= 300 || c.ObjectRef.Subresource != "" {
			continue
		}
		if c.ObjectRef.Resource != upstream.SandboxTemplates.Resource && c.ObjectRef.Resource != upstream.Sandboxes.Resource {
			continue
		}
		if err := json.Unmarshal(c.Object, &c.Stored.Object); err != nil {
			return nil, fmt.Errorf("read what was stored: %w", err)
		}
		calls = append(calls, c)
	}
	slices.SortStableFunc(calls, func(a, b call) int { return a.Ended.Compare(b.Ended.Time) })
	out, known := map[string][]porcupine.Operation{}, map[string]string{}
	for _, c := range calls {
		s, changes := c.step(known)
		if ns := c.ObjectRef.Namespace; changes {
			out[ns] = append(out[ns], porcupine.Operation{Input: s, Call: c.Began.UnixMicro(), Return: c.Ended.UnixMicro()})
		}
	}
	return out, nil
}

// step returns nothing for writes that change neither the template nor who has a sandbox. known has the template's last
// image, and the sandboxes that claims have.
func (c call) step(known map[string]string) (s step, changes bool) {
	s.image = ImageOf(&c.Stored)
	key := c.ObjectRef.Namespace
	switch c.Stored.GetKind() {
	case "SandboxTemplate":
		changes = known[key] != s.image
	case "Sandbox":
		owner := metav1.GetControllerOf(&c.Stored)
		if owner == nil || owner.Kind != "SandboxClaim" {
			return s, false
		}
		s.claim, s.sandbox = owner.Name, c.Stored.GetName()
		key += "/" + s.claim + "/" + s.sandbox
		changes = known[key] == ""
	}
	known[key] = s.image
	return s, changes
}

func TestLinear(t *testing.T) {
	at := func(began, ended int, s step) porcupine.Operation {
		return porcupine.Operation{Input: s, Call: int64(began), Return: int64(ended)}
	}
	v1, v2 := step{image: "v1"}, step{image: "v2"}
	bind := func(image, claim, sandbox string) step { return step{image, claim, sandbox} }
	tests := map[string]struct {
		history []porcupine.Operation
		whole   bool
		wrong   []string
	}{
		"what the template says":     {history: []porcupine.Operation{at(1, 2, v1), at(3, 4, bind("v1", "c", "a"))}, whole: true},
		"what it said before":        {history: []porcupine.Operation{at(1, 2, v1), at(3, 4, v2), at(5, 6, bind("v1", "c", "a"))}, wrong: []string{"c"}},
		"what it never said":         {history: []porcupine.Operation{at(1, 2, v1), at(5, 6, bind("v3", "c", "a"))}, wrong: []string{"c"}},
		"while it changes, the old":  {history: []porcupine.Operation{at(1, 2, v1), at(3, 6, v2), at(5, 8, bind("v1", "c", "a"))}, whole: true},
		"while it changes, the new":  {history: []porcupine.Operation{at(1, 2, v1), at(3, 6, v2), at(5, 8, bind("v2", "c", "a"))}, whole: true},
		"the new and then the old":   {history: []porcupine.Operation{at(1, 2, v1), at(3, 9, v2), at(4, 5, bind("v2", "c", "a")), at(6, 7, bind("v1", "d", "b"))}},
		"one sandbox for two claims": {history: []porcupine.Operation{at(1, 2, v1), at(3, 4, bind("v1", "c", "a")), at(5, 6, bind("v1", "d", "a"))}},
		"two sandboxes for a claim":  {history: []porcupine.Operation{at(1, 2, v1), at(3, 4, bind("v1", "c", "a")), at(5, 6, bind("v1", "c", "b"))}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			whole, wrong := linear(tc.history)
			if whole != tc.whole {
				t.Errorf("linearizable: got %t, want %t", whole, tc.whole)
			}
			if diff := cmp.Diff(tc.wrong, wrong); diff != "" {
				t.Errorf("binds that nothing explains (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestHistories(t *testing.T) {
	const log = `
{"stage":"ResponseStarted","objectRef":{"resource":"sandboxtemplates","namespace":"a"}}
{"stage":"ResponseComplete","objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxtemplates","namespace":"a"},"responseStatus":{"code":409}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxes","namespace":"a","name":"m"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-11-01T10:00:05.000000Z","stageTimestamp":"2026-11-01T10:00:05.000002Z",
 "responseObject":{"kind":"Sandbox","metadata":{"name":"m","ownerReferences":[{"kind":"SandboxClaim","name":"c","controller":true}]},"spec":{"podTemplate":{"spec":{"containers":[{"image":"v1"}]}}}}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxtemplates","namespace":"a","name":"t"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-01T10:00:00.000000Z","stageTimestamp":"2026-11-01T10:00:00.000001Z",
 "responseObject":{"kind":"SandboxTemplate","metadata":{"name":"t"},"spec":{"podTemplate":{"spec":{"containers":[{"image":"v1"}]}}}}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxes","namespace":"a","name":"m"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-01T10:00:01.000000Z","stageTimestamp":"2026-11-01T10:00:01.000000Z",
 "responseObject":{"kind":"Sandbox","metadata":{"name":"m","ownerReferences":[{"kind":"SandboxWarmPool","name":"p","controller":true}]},"spec":{"podTemplate":{"spec":{"containers":[{"image":"v1"}]}}}}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxes","namespace":"a","name":"m"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-11-01T10:00:06.000000Z","stageTimestamp":"2026-11-01T10:00:06.000000Z",
 "responseObject":{"kind":"Sandbox","metadata":{"name":"m","ownerReferences":[{"kind":"SandboxClaim","name":"c","controller":true}]},"spec":{"podTemplate":{"spec":{"containers":[{"image":"v1"}]}}}}}
{"stage":"ResponseComplete","objectRef":{"resource":"sandboxes","subresource":"status","namespace":"a","name":"m"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"sandboxtemplates","namespace":"a","name":"t"},"responseStatus":{"code":200}}
`
	got, err := histories(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC).UnixMicro()
	const second = int64(time.Second / time.Microsecond)
	want := map[string][]porcupine.Operation{"a": {
		{Input: step{image: "v1"}, Call: began, Return: began + 1},
		{Input: step{image: "v1", claim: "c", sandbox: "m"}, Call: began + 5*second, Return: began + 5*second + 2},
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{}), cmp.FilterPath(func(p cmp.Path) bool { return strings.HasPrefix(p.Last().String(), ".has") }, cmp.Ignore())); diff != "" {
		t.Errorf("histories (-want,+got):\n%s", diff)
	}
	if _, err := histories(strings.NewReader("{")); err == nil {
		t.Error("half a line is no error")
	}
}
