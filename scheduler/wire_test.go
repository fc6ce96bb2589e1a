package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/randfill"
)

// plainly answers by encoding/json alone, as kube-scheduler itself encodes and
// decodes; nil when the body is no request.
func plainly(t *testing.T, e *Extender, path string, body []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	var args extenderv1.ExtenderArgs
	var preemption extenderv1.ExtenderPreemptionArgs
	switch path {
	case FilterPath:
		if decoder.Decode(&args) == nil {
			return again(t, e.Filter(t.Context(), &args))
		}
	case PrioritizePath:
		if decoder.Decode(&args) == nil {
			return again(t, e.Prioritize(t.Context(), &args))
		}
	case PreemptPath:
		if decoder.Decode(&preemption) == nil {
			return again(t, e.Preempt(t.Context(), &preemption))
		}
	}
	return nil
}

// again is an answer as it arrives.
func again[T any](t *testing.T, answer *T) any {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return decoded[T](t, text)
}

func decoded[T any](t *testing.T, text []byte) any {
	t.Helper()
	into := new(T)
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("the answer %s: %v", text, err)
	}
	return into
}

// sameAnswer: a node in full goes out as it came in, so that only names are
// compared.
var sameAnswer = cmp.Options{
	cmp.Transformer("names", func(list *corev1.NodeList) []string {
		if list == nil {
			return nil
		}
		names := []string{}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}),
	cmpopts.EquateComparable(),
}

// checkAnswer compares a handler's answer with the one of encoding/json, of an
// extender that was asked the same before.
func checkAnswer(t *testing.T, fast, plain *Extender, path string, body []byte) {
	t.Helper()
	w := ask(fast, http.MethodPost, path, bytes.NewReader(body))
	want := plainly(t, plain, path, body)
	if (want == nil) != (w.Code == http.StatusBadRequest) {
		t.Fatalf("%s answers %d %s, encoding/json %v, to %s", path, w.Code, w.Body, want, body)
	}
	if want == nil {
		return
	}
	var got any
	switch path {
	case FilterPath:
		got = decoded[extenderv1.ExtenderFilterResult](t, w.Body.Bytes())
	case PrioritizePath:
		got = decoded[extenderv1.HostPriorityList](t, w.Body.Bytes())
	case PreemptPath:
		got = decoded[extenderv1.ExtenderPreemptionResult](t, w.Body.Bytes())
	}
	if diff := cmp.Diff(want, got, sameAnswer); diff != "" {
		t.Fatalf("%s to %s (-want,+got):\n%s", path, body, diff)
	}
}

// randomRequest is one as kube-scheduler, or somebody else, may write it.
func randomRequest(random *rand.Rand) []byte {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	names := make([]string, random.IntN(6))
	plain := random.IntN(2) == 0
	for i := range names {
		names[i] = pick("a1", "b1", "leaving", "nobody-knows", "")
		if !plain {
			names[i] = pick("a1", "b1", "leaving", "nobody-knows", `quo"te`, "ünï", "<&>", "\\", "", "\u2028")
		}
	}
	request := map[string]any{}
	if random.IntN(8) > 0 {
		pod := podNamed(pick("stale", "fresh", "fresh", "other", "gone"))
		request[pick("Pod", "Pod", "Pod", "pod")] = pod
	}
	if random.IntN(4) > 0 {
		request[pick("NodeNames", "NodeNames", "NodeNames", "nodenames")] = names
	}
	if random.IntN(4) == 0 {
		request["Nodes"] = nodeList(names...)
	}
	for _, key := range []string{"Unknown", "NodeNames", "Nodes", "Pod"} {
		if random.IntN(12) == 0 {
			request[key] = []any{nil, 1, "a1", names, []any{"a1", nil, "b1"}}[random.IntN(5)]
		}
	}
	// Mostly in the order in which kube-scheduler writes them.
	keys := slices.SortedFunc(maps.Keys(request), func(a, b string) int { return strings.Compare(b, a) })
	slices.SortStableFunc(keys, func(a, b string) int {
		return strings.Index("PodNodesNodeNames", a) - strings.Index("PodNodesNodeNames", b)
	})
	if random.IntN(4) == 0 {
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	fields := make([]string, len(keys))
	for i, key := range keys {
		value, err := json.Marshal(request[key])
		if err != nil {
			panic(err)
		}
		fields[i] = fmt.Sprintf("%q:%s", key, value)
	}
	body := []byte("{" + strings.Join(fields, ",") + "}")
	if random.IntN(6) == 0 {
		var indented bytes.Buffer
		_ = json.Indent(&indented, body, "", " ")
		return append(indented.Bytes(), pick("", " ", "trailing")...)
	}
	return body
}

// Requests are answered as encoding/json alone would have them answered.
func TestAnswersAreThoseOfEncodingJSON(t *testing.T) {
	placed := map[types.UID]string{"uid-x": "a1", "uid-y": "a1", "uid-fresh": "b1"}
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 2))
		fast, plain := newExtender(members{dispositions: known, placed: placed}), newExtender(members{dispositions: known, placed: placed})
		for range 500 {
			checkAnswer(t, fast, plain, []string{FilterPath, PrioritizePath}[random.IntN(2)], randomRequest(random))
		}
	}
}

// Requests at the same time use the room of those before, and get answers of their own.
func TestAnswersAtTheSameTime(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 3))
			fast, plain := newExtender(members{dispositions: known}), newExtender(members{dispositions: known})
			for range 200 {
				checkAnswer(t, fast, plain, []string{FilterPath, PrioritizePath}[random.IntN(2)], randomRequest(random))
			}
		})
	}
}

// Of what kube-scheduler writes nothing is looked at twice.
func TestRequestsOfSchedulersTakeTheShortWay(t *testing.T) {
	names := []string{"a1", "node-1.region.compute.internal"}
	for name, args := range map[string]extenderv1.ExtenderArgs{
		"names":         {Pod: podNamed("fresh"), NodeNames: &names},
		"nodes in full": {Pod: podNamed("fresh"), Nodes: nodeList(names...)},
		"no nodes":      {Pod: podNamed("fresh"), NodeNames: &[]string{}},
	} {
		body, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		q := readPlain(body)
		if q == nil {
			t.Fatalf("%s: read in the long way: %s", name, body)
		}
		if diff := cmp.Diff(args, q.ExtenderArgs); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
		if (args.NodeNames != nil) != (q.names != "") {
			t.Errorf("%s: kept %q", name, q.names)
		}
	}
}

// Every field of an answer is written, also one that a later version of the API
// has.
func TestFilterAnswersAreComplete(t *testing.T) {
	fill := randfill.NewWithSeed(1).NilChance(0).NumElements(1, 3).Funcs(
		func(list *corev1.NodeList, _ randfill.Continue) { *list = *nodeList("a", "b") },
	)
	for i := range 50 {
		var want, got extenderv1.ExtenderFilterResult
		fill.Fill(&want)
		text, err := (&question{}).appendFilter(nil, &want)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(want, got) {
			t.Errorf("round %d: %s", i, cmp.Diff(want, got))
		}
	}
}

func TestPlainStrings(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: {}, `["a"]`: {"a"}, `["a","b c"]`: {"a", "b c"}, `["",""]`: {"", ""}, `["a","ü"]`: nil, "[\"a\x01\"]": nil, `["a"]}`: nil, `["a`: nil, `["a"`: nil,
		`[ "a"]`: nil, `["a" ,"b"]`: nil, `["a", "b"]`: nil, `["a\\u0062"]`: nil, `["a\"","b"]`: nil, `[null]`: nil, `["a",1]`: nil, `[["a"]]`: nil, `{}`: nil, `"a"`: nil,
	} {
		got, ok := plainStrings(text)
		if ok != (want != nil) || ok && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("plainStrings(%s) = %q, %t, want %q", text, got, ok, want)
		}
	}
}
