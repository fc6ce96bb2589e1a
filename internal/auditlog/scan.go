package auditlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// jsonDepth is how deep a patch may be nested that the API server accepts and logs as it came: encoding/json, by which it
	// checks patches, refuses what is deeper (maxNestingDepth in encoding/json/scanner.go).
	jsonDepth = 10_000
	// maxDepth bounds how deep a value may be nested: a patch, with the event and what a provider wraps around it.
	maxDepth = jsonDepth + 100
)

var (
	errCut  = errors.New("it ends in the middle of a JSON value")
	errDeep = fmt.Errorf("it is nested deeper than %d levels", maxDepth)
)

// Most of a log is passed over: managed fields, requests, statuses. So values are skipped rather than decoded, which takes
// about a nanosecond a byte and no memory; what is used is decoded by encoding/json, which also refuses what is no JSON.

// space returns the position of the first byte at or after i that is no white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the position after the string that begins at i.
func stringEnd(b []byte, i int) (int, error) {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		escapes := 0
		for k := i + n - 1; k >= i && b[k] == '\\'; k-- {
			escapes++
		}
		i += n + 1
		if escapes%2 == 0 {
			return i, nil
		}
	}
	return 0, errCut
}

// valueEnd returns the position after the value that begins at i.
func valueEnd(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, errCut
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	case '}', ']', ',', ':':
		return 0, fmt.Errorf("there is %q where a JSON value should be", b[i])
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i, nil
}

func nestedEnd(b []byte, i int) (int, error) {
	// Pods have about ten levels, and those stay on the stack.
	open := make([]byte, 0, 64)
	for i < len(b) {
		switch b[i] {
		case '"':
			end, err := stringEnd(b, i)
			if err != nil {
				return 0, err
			}
			i = end
			continue
		case '{', '[':
			if len(open) == maxDepth {
				return 0, errDeep
			}
			open = append(open, b[i]+2) // what closes it
		case '}', ']':
			last := len(open) - 1
			if open[last] != b[i] {
				return 0, fmt.Errorf("there is %q where %q should be", b[i], open[last])
			}
			if open = open[:last]; last == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return 0, errCut
}

// fields calls f with each key of an object and its value as it stands, without decoding either. Keys with escapes are
// passed over: none that matters has any. f stops the walk by an error.
func fields(b []byte, f func(key, value []byte) error) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return fmt.Errorf("it begins with %q, not with an object", shown(b[min(i, len(b)):]))
	}
	for i++; ; i++ {
		if i = space(b, i); i < len(b) && b[i] == '}' {
			return last(b, i)
		}
		key, value, end, err := field(b, i)
		if err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
		if i = space(b, end); i >= len(b) {
			return errCut
		}
		switch b[i] {
		case ',':
		case '}':
			return last(b, i)
		default:
			return fmt.Errorf("there is %q after the value of %q", b[i], shown(key))
		}
	}
}

// last fails unless the byte at i is the last one.
func last(b []byte, i int) error {
	if i = space(b, i+1); i < len(b) {
		return fmt.Errorf("there is %q after its end", shown(b[i:]))
	}
	return nil
}

func field(b []byte, i int) (key, value []byte, end int, err error) {
	if i >= len(b) {
		return nil, nil, 0, errCut
	}
	if b[i] != '"' {
		return nil, nil, 0, fmt.Errorf("there is %q where a key should be", b[i])
	}
	keyEnd, err := stringEnd(b, i)
	if err != nil {
		return nil, nil, 0, err
	}
	at := space(b, keyEnd)
	if at >= len(b) {
		return nil, nil, 0, errCut
	}
	if b[at] != ':' {
		return nil, nil, 0, fmt.Errorf("there is %q after key %q", b[at], shown(b[i:keyEnd]))
	}
	at = space(b, at+1)
	if end, err = valueEnd(b, at); err != nil {
		return nil, nil, 0, err
	}
	return b[i+1 : keyEnd-1], b[at:end], end, nil
}

// items calls f with each element of an array.
func items(b []byte, f func(value []byte) error) error {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return fmt.Errorf("it begins with %q, not with an array", shown(b[min(i, len(b)):]))
	}
	for i++; ; i++ {
		if i = space(b, i); i < len(b) && b[i] == ']' {
			return nil
		}
		end, err := valueEnd(b, i)
		if err != nil {
			return err
		}
		if err := f(b[i:end]); err != nil {
			return err
		}
		if i = space(b, end); i >= len(b) {
			return errCut
		}
		if b[i] == ']' {
			return nil
		}
		if b[i] != ',' {
			return fmt.Errorf("there is %q after an element", b[i])
		}
	}
}

// text decodes a string; anything else is the empty one.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// shown is the beginning of what somebody else wrote, short enough for a message.
func shown(b []byte) string {
	const most = 20
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
