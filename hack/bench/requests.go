package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// agentPrefix begins the user agent of everything that the manager sends; its
// live reads say so behind it (serverConfig in cmd/freshbind/app/manager.go).
const agentPrefix = "freshbind/"

// request is one finished request, by the API server's audit log.
type request struct {
	Verb       string
	UserAgent  string
	User       struct{ Username string }
	RequestURI string
	Stage      string
	// StageTimestamp is when its answer had been sent.
	StageTimestamp time.Time
	ObjectRef      struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus struct{ Code int }
}

// deleted: it removed a member.
func (r request) deleted() bool {
	return r.Verb == "delete" && r.ObjectRef.Resource == "sandboxes" && r.ResponseStatus.Code < 300
}

// String is what the request was about, without its object's name.
func (r request) String() string {
	what := r.ObjectRef.Resource
	if what == "" {
		what, _, _ = strings.Cut(r.RequestURI, "?")
	}
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return fmt.Sprintf("%s %s %d", r.Verb, what, r.ResponseStatus.Code)
}

// auditLog reads an API server's audit log from where it was last read to.
type auditLog struct {
	path   string
	offset int64
}

// skip goes on from the log's present end: that of its last whole line, since a line
// can be half written while somebody looks.
func (l *auditLog) skip() error { return l.eachLine(func([]byte) error { return nil }) }

// next returns the requests that finished since, except for watches, which
// finish when they please.
func (l *auditLog) next() ([]request, error) {
	var found []request
	err := l.eachLine(func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if r.Stage == "ResponseComplete" && r.Verb != "watch" {
			found = append(found, r)
		}
		return nil
	})
	return found, err
}

// eachLine hands on what was written since. What has no end yet is read next time.
func (l *auditLog) eachLine(do func(line []byte) error) error {
	f, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		l.offset += int64(len(line))
		if err := do(line); err != nil {
			return err
		}
	}
}

// by keeps the requests of a user agent that begins with prefix.
func by(requests []request, prefix string) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return !strings.HasPrefix(r.UserAgent, prefix) })
}

// deletes splits what removed a member from all others.
func deletes(requests []request) (removed, others []request) {
	for _, r := range requests {
		if r.deleted() {
			removed = append(removed, r)
		} else {
			others = append(others, r)
		}
	}
	return removed, others
}

// unscheduled leaves out what Freshbind asks for at fixed times, whether anything is
// rolled out or not: discovery once a minute, and its own webhook configuration every
// ten seconds (controllers/closing).
func unscheduled(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		discovery := r.ObjectRef.Resource == "" && strings.HasPrefix(r.RequestURI, "/apis/")
		return r.Verb == "get" && (discovery || r.ObjectRef.Resource == "validatingwebhookconfigurations")
	})
}

// last is when the last request had been answered.
func last(requests []request) time.Time {
	var at time.Time
	for _, r := range requests {
		if r.StageTimestamp.After(at) {
			at = r.StageTimestamp
		}
	}
	return at
}

// kinds counts requests by what they were about: "2 get sandboxwarmpools 200".
func kinds(requests []request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.String()]++
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
	}
	return strings.Join(parts, ", ")
}
