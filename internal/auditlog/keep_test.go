package auditlog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
)

func TestWhatAWriteDid(t *testing.T) {
	for name, tc := range map[string]struct {
		verb     string
		code     int
		metadata string
		want     writeKind
	}{
		"created":                     {"create", 201, `{}`, created},
		"created by a server's apply": {"patch", 201, `{}`, created},
		"changed":                     {"patch", 200, `{}`, changed},
		"deleted":                     {"delete", 200, `{}`, goneUnordered},
		"deleted, with a finalizer":   {"delete", 200, `{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]}`, changed},
		"the last finalizer":          {"patch", 200, `{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":[]}`, goneUnordered},
		"deleted, with time to end":   {"delete", 200, `{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30}`, changed},
		"at the end of that time":     {"delete", 200, `{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0}`, goneUnordered},
		"not deleted, no finalizer":   {"update", 200, `{"finalizers":[]}`, changed},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parseStored([]byte(`{"metadata":` + tc.metadata + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.after(&event{verb: tc.verb, code: tc.code}); got != tc.want {
				t.Errorf("it did %d, want %d", got, tc.want)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	const one = `{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"`
	for name, tc := range map[string]struct {
		text string
		want []ownerRef
	}{
		"none":           {``, nil},
		"empty":          {`[]`, nil},
		"an owner":       {`[` + one + `}]`, []ownerRef{{"v1", "Node", "n", "u", nil}}},
		"a controller":   {`[` + one + `,"controller":true}]`, []ownerRef{{"v1", "Node", "n", "u", ptr.To(true)}}},
		"explicitly not": {`[` + one + `,"controller":false}, ` + one + `}]`, []ownerRef{{"v1", "Node", "n", "u", ptr.To(false)}, {"v1", "Node", "n", "u", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := owners([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, packed1); diff != "" {
				t.Errorf("owners (-want,+got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{`{}`, `["x"]`, `[{"uid":"u"`} {
		if got, err := owners([]byte(text)); err == nil {
			t.Errorf("%s is %v, want an error", text, got)
		}
	}
}

// A cluster runs many Pods that are no sandbox's, and its log has all of them.
func TestPodsOfOthersAreNotKept(t *testing.T) {
	c := newCast(t)
	own := len(read(t, c.text()).versions)
	c.add(builders.PodFrom(c.pod).Name("other").UID("uid-other").Owners().Unset("metadata", "labels"))
	if got := len(read(t, c.text()).versions); got != own {
		t.Errorf("%d versions are kept, want %d:\n%s", got, own, c.lines[len(c.lines)-1])
	}
}

func TestASpecThatCannotBeReadIsAnError(t *testing.T) {
	for spec, want := range map[string]string{`"oops"`: "spec: decode: it begins with", `{"priority":tru}`: "spec: it is no JSON"} {
		c := newCast(t)
		pod := &c.lines[3]
		if !strings.Contains(*pod, `"kind":"Pod"`) {
			t.Fatalf("it is no Pod: %s", *pod)
		}
		at := strings.Index(*pod, `"spec":`) + len(`"spec":`)
		end, err := valueEnd([]byte(*pod), at)
		if err != nil {
			t.Fatal(err)
		}
		*pod = (*pod)[:at] + spec + (*pod)[end:]
		if _, _, err := read(t, c.text()).History("", checker.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", spec, err, want)
		}
	}
}
