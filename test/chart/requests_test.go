package chart

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/test/fixture"
)

// request is one that Freshbind has sent, from the API server's audit log.
type request struct {
	Stage, Verb string
	User        struct{ Username string }
	ObjectRef   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	Status      metav1.Status `json:"responseStatus"`
	URI         string        `json:"requestURI"`
	At          time.Time     `json:"requestReceivedTimestamp"`
}

// forbidden: it takes a right that Freshbind does not have. In a namespace that is
// being deleted nobody may create anything.
func (r request) forbidden() bool {
	terminating := func(c metav1.StatusCause) bool { return c.Type == corev1.NamespaceTerminatingCause }
	ends := r.Status.Details != nil && slices.ContainsFunc(r.Status.Details.Causes, terminating)
	return r.Status.Code == http.StatusForbidden && !ends
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s/%s: %d", r.Verb, r.resource(), r.ObjectRef.Namespace, r.ObjectRef.Name, r.Status.Code)
}

// resource is written as a role's rule has it, group first.
func (r request) resource() string {
	out := r.ObjectRef.Resource
	if r.ObjectRef.APIGroup != "" {
		out = r.ObjectRef.APIGroup + "/" + out
	}
	if r.ObjectRef.Subresource != "" {
		out += "/" + r.ObjectRef.Subresource
	}
	return out
}

// harmless: about Freshbind's own books, and what is not stored.
func (r request) harmless() bool {
	own := []string{
		"apps/controllerrevisions", "coordination.k8s.io/leases", "events.k8s.io/events",
		"authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews",
	}
	return slices.Contains(own, r.resource()) || strings.Contains(r.URI, "dryRun=All") ||
		r.ObjectRef.APIGroup == "admissionregistration.k8s.io"
}

// requests are all that Freshbind has sent so far and that were answered.
func (w *world) requests(t *testing.T) []request {
	t.Helper()
	log, err := os.Open(w.cluster.AuditLogPath(0))
	w.must(t, err)
	defer func() { _ = log.Close() }()
	var out []request
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return out
		}
		var r request
		w.must(t, json.Unmarshal(line, &r))
		if r.User.Username == fixture.User && (r.Stage == "ResponseComplete" || r.Stage == "ResponseStarted") {
			out = append(out, r)
		}
	}
}

// span is a time between two moments.
type span struct{ from, to time.Time }

// leaves notes that Freshbind's rights go away while f runs.
func (w *world) leaves(f func()) {
	from := time.Now()
	f()
	w.away = append(w.away, span{from, time.Now()})
}

func (w *world) wasAway(at time.Time) bool {
	return slices.ContainsFunc(w.away, func(s span) bool { return !at.Before(s.from) && !at.After(s.to) })
}

func TestForbidden(t *testing.T) {
	const refused = `{"responseStatus":{"status":"Failure","reason":"Forbidden","code":403`
	for name, tc := range map[string]struct {
		line string
		want bool
	}{
		"without the right":  {refused + `,"message":"is forbidden: User cannot create"}}`, true},
		"with other causes":  {refused + `,"details":{"causes":[{"reason":"FieldValueInvalid"}]}}}`, true},
		"the namespace ends": {refused + `,"details":{"causes":[{"reason":"NamespaceTerminating","field":"metadata.namespace"}]}}}`, false},
		"done":               {`{"responseStatus":{"code":201}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r request
			if err := json.Unmarshal([]byte(tc.line), &r); err != nil {
				t.Fatal(err)
			}
			if got := r.forbidden(); got != tc.want {
				t.Errorf("forbidden() = %t, want %t", got, tc.want)
			}
		})
	}
}
