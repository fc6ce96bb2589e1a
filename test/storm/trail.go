package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// request is one write, as the API server's audit log has it.
type request struct {
	id, verb, user            string
	resource, namespace, name string
	code                      int
	message                   string
	// judged: a webhook of Freshbind's for binds or cold starts was asked.
	judged bool
	// received and answered are the API server's own, to the microsecond.
	received, answered time.Time
}

func (r request) succeeded() bool { return r.code < 300 }

// trail is all writes to what the storm is about, in the order of their answers.
type trail struct{ requests []request }

// auditEvent is what is read of an audit event (k8s.io/apiserver/pkg/apis/audit/v1).
type auditEvent struct {
	AuditID string `json:"auditID"`
	Stage   string `json:"stage"`
	Verb    string `json:"verb"`
	User    struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time         `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time         `json:"stageTimestamp"`
	Annotations              map[string]string `json:"annotations"`
}

var (
	writeVerbs = []string{"create", "update", "patch", "delete"}
	// Most resources of OpenKruise Agents go by the names of agent-sandbox's.
	poolResources = []string{upstream.SandboxWarmPools.Resource, fakekruise.Sets.Resource}
	traced        = append([]string{
		upstream.Sandboxes.Resource, upstream.SandboxClaims.Resource, upstream.SandboxTemplates.Resource, "pods",
	}, poolResources...)
	// Every stage repeats when the request was received, so the last one tells all.
	complete = []byte(`"stage":"ResponseComplete"`)
)

// readTrail reads what an audit log, one event per line, has of these
// namespaces. A last line without an end is one that is being written, and left
// out.
func readTrail(from io.Reader, namespaces []string) (*trail, error) {
	t := &trail{}
	lines := bufio.NewReader(from)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if !bytes.Contains(line, complete) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read audit log: line %d: %w", number, err)
		}
		if e.traced() && slices.Contains(namespaces, e.ObjectRef.Namespace) {
			t.requests = append(t.requests, e.request())
		}
	}
}

func (e auditEvent) traced() bool {
	return e.Stage == "ResponseComplete" && e.ObjectRef.Subresource == "" &&
		slices.Contains(writeVerbs, e.Verb) && slices.Contains(traced, e.ObjectRef.Resource)
}

func (e auditEvent) request() request {
	r := request{
		id: e.AuditID, verb: e.Verb, user: e.User.Username,
		resource: e.ObjectRef.Resource, namespace: e.ObjectRef.Namespace, name: e.ObjectRef.Name,
		code: e.ResponseStatus.Code, message: e.ResponseStatus.Message,
		received: e.RequestReceivedTimestamp, answered: e.StageTimestamp,
	}
	for _, hook := range []string{"bind", "coldstart"} {
		// Where a pool enforces, the hooks have names of their own, before and after the
		// leader has closed them.
		for _, variant := range []string{"", webhooks.PoolPrefix, webhooks.AuditPrefix} {
			_, asked := e.Annotations[variant+hook+".freshbind.dev/verdict"]
			r.judged = r.judged || asked
		}
	}
	return r
}

// denials are what the API server says of writes that Freshbind, or one of its
// policies, denied.
var denials = []string{
	`bind.freshbind.dev" denied the request`, `coldstart.freshbind.dev" denied the request`,
	`admission webhook "birth.freshbind.dev" denied the request`, `foreigncontroller.freshbind.dev" denied the request`,
	`ValidatingAdmissionPolicy 'freshbind-`,
}

// refused counts the writes that were denied, among those that f accepts. One that
// Freshbind could not decide is not among them.
func (t *trail) refused(f func(request) bool) int {
	n := 0
	for _, r := range t.requests {
		contains := func(words string) bool { return strings.Contains(r.message, words) }
		if r.code < 500 && f(r) && slices.ContainsFunc(denials, contains) {
			n++
		}
	}
	return n
}

// last is the latest request that f accepts and that was received by then.
func (t *trail) last(by time.Time, f func(request) bool) (request, bool) {
	var found request
	ok := false
	for _, r := range t.requests {
		if f(r) && r.succeeded() && !r.received.After(by) && (!ok || r.received.After(found.received)) {
			found, ok = r, true
		}
	}
	return found, ok
}

// bind is the request that made the bind. Names of Sandboxes may come again, so
// the one closest before the event counts.
func (t *trail) bind(b checker.Bind) (request, bool) {
	return t.last(b.SeenAt, func(r request) bool {
		return r.resource == upstream.Sandboxes.Resource && r.namespace == b.Namespace && r.name == b.Sandbox.Name &&
			r.judged && (r.verb == "create") != b.Warm
	})
}

// deletion is the latest request that deleted an object of this name by then.
func (t *trail) deletion(resource, namespace, name string, by time.Time) (request, bool) {
	return t.last(by, func(r request) bool {
		return r.verb == "delete" && r.resource == resource && r.namespace == namespace && r.name == name
	})
}

// byID finds a request by the id that its sender gave it.
func (t *trail) byID(id string) (request, bool) {
	i := slices.IndexFunc(t.requests, func(r request) bool { return r.id == id })
	if i < 0 {
		return request{}, false
	}
	return t.requests[i], true
}
