package integration

import (
	"encoding/json"
	"os"
	"strings"
)

// decision is what Freshbind logged of one verdict. Tests read it to make sure
// that the guard was asked at all, and for its reasons; never to judge.
type decision struct {
	Msg       string `json:"msg"`
	Namespace string `json:"namespace"`
	Operation string `json:"operation"`
	Sandbox   string `json:"sandbox"`
	Claim     string `json:"claim"`
	Verdict   string `json:"verdict"`
	Reason    string `json:"reason"`
	Mode      string `json:"mode"`
}

// decisions returns the verdicts on writes in the namespace that match, in the
// order in which they were given.
func (s *stage) decisions(match func(decision) bool) []decision {
	s.t.Helper()
	log, err := os.ReadFile(s.w.Guard.LogPath())
	s.must(err)
	var out []decision
	for line := range strings.Lines(string(log)) {
		var d decision
		// The last line may be half written, and not every line is Freshbind's.
		if json.Unmarshal([]byte(line), &d) != nil || d.Msg != "Judged write" || d.Namespace != s.Name {
			continue
		}
		if match(d) {
			out = append(out, d)
		}
	}
	return out
}

// denied matches the denials of an operation (bind, coldstart, birth).
func denied(operation string) func(decision) bool {
	return func(d decision) bool { return d.Operation == operation && d.Verdict == "deny" }
}
