package auditlog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

// level is how much of a request a policy has logged.
type level string

const (
	levelMetadata level = "Metadata"
	levelRequest  level = "Request"
	levelResponse level = "RequestResponse"
)

const (
	stageComplete = "ResponseComplete"
	statusCreated = 201
)

// event is what is used of one audit event. Its byte slices are parts of the line, and valid as long as that is.
type event struct {
	level                level
	stage, verb          string
	uri                  []byte
	user                 string
	kind                 *checker.Kind // nil for what is not judged
	subresource          string
	namespace, name      string
	code                 int
	ok                   bool
	response             []byte
	received, done       time.Time
	truncated, isOneOfUs bool
}

// kinds are those of which a log is read, by group and plural name. Nodes are not: their heartbeats would be most of it.
var kinds = func() map[[2]string]*checker.Kind {
	out := map[[2]string]*checker.Kind{}
	for _, k := range checker.Kinds() {
		if k.Resource != checker.Nodes {
			out[[2]string{k.Group, k.Plural}] = &k
		}
	}
	return out
}()

// writes reports whether the event is a write that was stored, of a resource that is judged.
func (e *event) writes() bool {
	switch e.verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	return e.kind != nil && e.ok && !bytes.Contains(e.uri, []byte("dryRun="))
}

// parse reads an audit event of any shape. isOneOfUs stays false for what is JSON, but no audit event.
func parse(line []byte) (event, error) {
	var e event
	err := fields(line, func(key, value []byte) error { return e.read(string(key), value) })
	if e.done.IsZero() {
		e.done = e.received
	}
	return e, err
}

func (e *event) read(key string, value []byte) error {
	switch key {
	case "user":
		return e.readUser(value)
	case "objectRef":
		return e.readRef(value)
	case "responseStatus":
		return e.readStatus(value)
	case "protoPayload":
		return e.readGoogle(value)
	case "requestReceivedTimestamp":
		return readTime(value, key, &e.received)
	case "stageTimestamp":
		return readTime(value, key, &e.done)
	case "timestamp":
		// Cloud Logging's own, which is when the request arrived; no other wrapping comes to here with one.
		if e.received.IsZero() {
			return readTime(value, key, &e.received)
		}
	default:
		e.readPlain(key, value)
	}
	return nil
}

func (e *event) readPlain(key string, value []byte) {
	switch key {
	case "kind":
		e.isOneOfUs = e.isOneOfUs || text(value) == "Event"
	case "level":
		e.level = level(text(value))
	case "stage":
		e.stage = text(value)
	case "verb":
		e.verb = text(value)
	case "requestURI":
		e.uri = value
	case "responseObject":
		e.response = value
	case "annotations":
		e.truncated = e.truncated || bytes.Contains(value, []byte(`"audit.k8s.io/truncated"`))
	case "split":
		// An entry that was too long for Cloud Logging, in several parts.
		e.truncated = true
	}
}

func readTime(value []byte, field string, into *time.Time) error {
	s := text(value)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("%s: %q is not a time", field, shown([]byte(s)))
	}
	*into = t
	return nil
}

func (e *event) readUser(value []byte) error {
	return fields(value, func(key, value []byte) error {
		if string(key) == "username" {
			e.user = text(value)
		}
		return nil
	})
}

func (e *event) readRef(value []byte) error {
	group, resource := "", ""
	err := fields(value, func(key, value []byte) error {
		switch string(key) {
		case "apiGroup":
			group = text(value)
		case "resource":
			resource = text(value)
		case "namespace":
			e.namespace = text(value)
		case "name":
			e.name = text(value)
		case "subresource":
			e.subresource = text(value)
		}
		return nil
	})
	e.kind = kinds[[2]string{group, resource}]
	return err
}

func (e *event) readStatus(value []byte) error {
	return fields(value, func(key, value []byte) error {
		if string(key) != "code" {
			return nil
		}
		code, err := strconv.Atoi(string(value))
		if err != nil {
			return fmt.Errorf("responseStatus.code: %q is not a number", shown(value))
		}
		e.code, e.ok = code, code >= 200 && code < 300
		return nil
	})
}

// readGoogle reads the AuditLog of Google's Cloud Logging. It has no level and no stage: it is written once, when the
// request is done, and what the policy left out is not there.
func (e *event) readGoogle(value []byte) error {
	e.isOneOfUs, e.stage, e.level, e.ok = true, stageComplete, levelMetadata, true
	method := ""
	err := fields(value, func(key, value []byte) error {
		switch string(key) {
		case "methodName":
			method = text(value)
		case "resourceName":
			e.readResourceName(text(value))
		case "authenticationInfo":
			return fields(value, func(key, value []byte) error {
				if string(key) == "principalEmail" {
					e.user = text(value)
				}
				return nil
			})
		case "request":
			if e.level == levelMetadata {
				e.level = levelRequest
			}
		case "response":
			e.response, e.level = value, levelResponse
		case "status":
			// google.rpc.Status: no code, or 0, is success.
			return fields(value, func(key, value []byte) error {
				if string(key) == "code" && string(value) != "0" {
					e.ok = false
				}
				return nil
			})
		}
		return nil
	})
	e.verb = method[strings.LastIndexByte(method, '.')+1:]
	return err
}

// readResourceName reads core/v1/namespaces/NS/pods/NAME/status and agents.x-k8s.io/v1beta1/namespaces/NS/sandboxes/NAME.
func (e *event) readResourceName(s string) {
	parts := strings.Split(s, "/")
	if len(parts) < 3 {
		return
	}
	group, rest := parts[0], parts[2:]
	if group == "core" {
		group = ""
	}
	if rest[0] == "namespaces" && len(rest) > 2 && kinds[[2]string{group, rest[2]}] != nil {
		e.namespace, rest = rest[1], rest[2:]
	}
	e.kind = kinds[[2]string{group, rest[0]}]
	if len(rest) > 1 {
		e.name = rest[1]
	}
	if len(rest) > 2 {
		e.subresource = rest[2]
	}
}
