package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// question is a request about a pod and the nodes that it may go to. Names of
// thousands of nodes are most of its bytes, so that they are looked at once, and
// go out again as they came in where none is taken away.
type question struct {
	extenderv1.ExtenderArgs
	// nodes and names are the text that Nodes and NodeNames come from; "" when only
	// the decoded form is kept.
	nodes, names string
}

// readQuestion reads what encoding/json reads, and in the same way, whatever it
// is: only requests as kube-scheduler writes them take the short way.
func readQuestion(body []byte) (*question, error) {
	if q := readPlain(body); q != nil {
		return q, nil
	}
	args, err := readWhole[extenderv1.ExtenderArgs](body)
	return &question{ExtenderArgs: *args}, err
}

// readWhole decodes the first JSON value of a body.
func readWhole[Args any](body []byte) (*Args, error) {
	args := new(Args)
	return args, json.NewDecoder(bytes.NewReader(body)).Decode(args)
}

// readPlain returns nil for a body with names or values that would have to be
// looked at twice.
func readPlain(body []byte) *question {
	q, text := &question{}, jsontext.NewDecoder(bytes.NewBuffer(body))
	if start, err := text.ReadToken(); err != nil || start.Kind() != '{' {
		return nil
	}
	for text.PeekKind() == '"' {
		name, err := text.ReadToken()
		if err != nil {
			return nil
		}
		field := name.String()
		if field == "NodeNames" {
			if rest := body[text.InputOffset():]; q.setNames(rest) {
				return q
			}
		}
		value, err := text.ReadValue()
		if err != nil || !q.set(field, value) {
			return nil
		}
	}
	if end, err := text.ReadToken(); err != nil || end.Kind() != '}' {
		return nil
	}
	return q
}

func (q *question) set(field string, value jsontext.Value) bool {
	switch field {
	case "Pod":
		return json.Unmarshal(value, &q.Pod) == nil
	case "Nodes":
		// The decoder uses again what it has read.
		q.nodes = string(value)
		return json.Unmarshal(value, &q.Nodes) == nil
	case "NodeNames":
		return value.Kind() == 'n'
	}
	return false
}

// setNames sets the names that are all that is left of a body, after the name of their
// field; false for anything else.
func (q *question) setNames(rest []byte) bool {
	array, ok := bytes.CutPrefix(rest, []byte(":"))
	if !ok {
		return false
	}
	if array, ok = bytes.CutSuffix(bytes.TrimRight(array, " \t\r\n"), []byte("}")); !ok {
		return false
	}
	text := string(array)
	names, ok := plainStrings(text)
	if ok {
		q.names, q.NodeNames = text, &names
	}
	return ok
}

// plainStrings reads a JSON array of strings in which every byte stands for
// itself and nothing is between them but a comma; false for any other.
func plainStrings(array string) ([]string, bool) {
	rest, ok := strings.CutPrefix(array, "[")
	if !ok {
		return nil, false
	}
	out := make([]string, 0, strings.Count(rest, ",")+1)
	for rest != "]" {
		if len(out) > 0 {
			if rest, ok = strings.CutPrefix(rest, ","); !ok {
				return nil, false
			}
		}
		if rest, ok = strings.CutPrefix(rest, `"`); !ok {
			return nil, false
		}
		end := plainLength(rest)
		if end == len(rest) || rest[end] != '"' {
			return nil, false
		}
		out, rest = append(out, rest[:end]), rest[end+1:]
	}
	return out, true
}

// plainLength is how many bytes at the beginning of s are, in a JSON string, just
// themselves.
func plainLength(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// appendFilter appends the answer to a filter.
func (q *question) appendFilter(b []byte, r *extenderv1.ExtenderFilterResult) ([]byte, error) {
	b = append(slices.Grow(b, len(q.nodes)+len(q.names)+len(`{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}`)), `{"Nodes":`...)
	if r.Nodes == q.Nodes && q.nodes != "" {
		b = append(b, q.nodes...)
	} else {
		nodes, err := json.Marshal(r.Nodes)
		if err != nil {
			return nil, fmt.Errorf("encoding the nodes that are left: %w", err)
		}
		b = append(b, nodes...)
	}
	b = append(b, `,"NodeNames":`...)
	switch {
	case r.NodeNames == nil:
		b = append(b, "null"...)
	case r.NodeNames == q.NodeNames && q.names != "":
		b = append(b, q.names...)
	default:
		b = appendStrings(b, *r.NodeNames)
	}
	b = appendFailed(append(b, `,"FailedNodes":`...), r.FailedNodes)
	b = appendFailed(append(b, `,"FailedAndUnresolvableNodes":`...), r.FailedAndUnresolvableNodes)
	b = appendString(append(b, `,"Error":`...), r.Error)
	return append(b, '}'), nil
}

func appendStrings(b []byte, list []string) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

func appendFailed(b []byte, failed extenderv1.FailedNodesMap) []byte {
	if failed == nil {
		return append(b, "null"...)
	}
	b = append(b, '{')
	// Nearly always all have the same reason.
	var last string
	var quoted []byte
	for name, why := range failed {
		if quoted == nil || why != last {
			last, quoted = why, appendString(nil, why)
			b = slices.Grow(b, len(failed)*(len(name)+len(quoted)+len(`"":,`)))
		}
		b = append(appendString(b, name), ':')
		b = append(append(b, quoted...), ',')
	}
	return append(bytes.TrimSuffix(b, []byte(",")), '}')
}

// appendPriorities appends the answer to a prioritize.
func appendPriorities(b []byte, list extenderv1.HostPriorityList) []byte {
	room := 2
	for _, host := range list {
		room += len(host.Host) + len(`{"Host":"","Score":10},`)
	}
	b = append(slices.Grow(b, room), '[')
	for _, host := range list {
		b = appendString(append(b, `{"Host":`...), host.Host)
		b = strconv.AppendInt(append(b, `,"Score":`...), host.Score, 10)
		b = append(b, "},"...)
	}
	return append(bytes.TrimSuffix(b, []byte(",")), ']')
}

// appendString appends s as JSON, as it is where that can be.
func appendString(b []byte, s string) []byte {
	if plainLength(s) < len(s) {
		// A string can always be marshalled.
		quoted, _ := json.Marshal(s)
		return append(b, quoted...)
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}
