// Package testevents reads what `go test -json` writes; see go doc test2json.
package testevents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Event is one of them.
type Event struct {
	Time    time.Time
	Action  string
	Package string
	// Test is "" for what concerns the package.
	Test   string
	Output string
	// Elapsed is in seconds.
	Elapsed float64
	// Key and Value are an attribute of the test (testing.T.Attr).
	Key, Value string
}

// Ended reports whether the event is the last of its test or package.
func (e Event) Ended() bool { return e.Action == "pass" || e.Action == "fail" || e.Action == "skip" }

// longest is that of a line in bytes: output can be long.
const longest = 16 << 20

// Read hands each event to each, until that returns an error or nothing is left. A
// line that is none is an error that shows it.
func Read(from io.Reader, each func(Event) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read events of go test -json: %w: %s", err, lines.Bytes())
		}
		if err := each(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read events of go test -json: %w", err)
	}
	return nil
}
