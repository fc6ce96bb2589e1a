package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/freshbind/freshbind/internal/freshness"
)

// journal reads Freshbind's log as it grows: many rows ask it often.
type journal struct {
	path string

	mu   sync.Mutex
	read int64
	// denials are by namespace, in mode enforce or audit.
	denials map[string][]decision
}

// deletion is the operation of a decision on a delete, which the log names by
// its message.
const deletion = "delete"

// guardProbe is the claim of which scenario.WaitGuarded asks.
const guardProbe = "freshbind-probe"

// of returns the denials in a namespace so far.
func (j *journal) of(namespace string) ([]decision, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	grown, err := wholeLines(j.path, j.read)
	if err != nil {
		return nil, err
	}
	j.read += int64(len(grown))
	for line := range bytes.Lines(grown) {
		j.add(line)
	}
	return slices.Clone(j.denials[namespace]), nil
}

// wholeLines is what a file has from an offset up to its last whole line.
func wholeLines(path string, from int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	grown := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(grown, from); err != nil {
		return nil, err
	}
	return grown[:bytes.LastIndexByte(grown, '\n')+1], nil
}

func (j *journal) add(line []byte) {
	var d decision
	if !bytes.Contains(line, []byte(`"verdict":"deny"`)) || json.Unmarshal(line, &d) != nil {
		return
	}
	switch d.Msg {
	case "Judged write":
		if d.Claim == guardProbe {
			return
		}
	case "Judged delete":
		d.Operation, d.Reason = deletion, string(freshness.MemberClaimed)
	default:
		return
	}
	if j.denials == nil {
		j.denials = map[string][]decision{}
	}
	j.denials[d.Namespace] = append(j.denials[d.Namespace], d)
}

// denials are what was denied in the row's namespace, of its operation.
func (r *row) denials() []decision {
	r.t.Helper()
	all, err := r.w.journal.of(r.Name)
	r.must(err)
	return slices.DeleteFunc(all, func(d decision) bool {
		return r.fault.operation != "" && d.Operation != string(r.fault.operation)
	})
}

// count is how often the reason was given.
func (r *row) count(reason freshness.Reason) int {
	r.t.Helper()
	n := 0
	for _, d := range r.denials() {
		if d.Reason == string(reason) {
			n++
		}
	}
	return n
}

// refusals counts the denials by reason, the first one first.
func (r *row) refusals(first freshness.Reason) string {
	r.t.Helper()
	counts := map[string]int{}
	var order []string
	if first != "" {
		order = append(order, string(first))
	}
	for _, d := range r.denials() {
		if !slices.Contains(order, d.Reason) {
			order = append(order, d.Reason)
		}
		counts[d.Reason]++
	}
	parts := make([]string, 0, len(order))
	for _, reason := range order {
		if counts[reason] == 0 {
			parts = append(parts, "none, deleted before anybody came")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s x%d", reason, counts[reason]))
	}
	return strings.Join(parts, " ")
}
