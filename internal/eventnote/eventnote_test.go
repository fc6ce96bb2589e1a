package eventnote

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
)

func TestTruncateCutsOnARune(t *testing.T) {
	for _, s := range []string{"short", strings.Repeat("a", Limit), strings.Repeat("a", Limit+1), strings.Repeat("é", Limit), "x" + strings.Repeat("é", Limit)} {
		got := Truncate(s)
		if len(got) > Limit || len(s) <= Limit && got != s || !strings.HasPrefix(s, strings.TrimSuffix(got, cutMark)) || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("Truncate of %d bytes is %d bytes", len(s), len(got))
		}
	}
}

func TestNotesAreCut(t *testing.T) {
	fake := events.NewFakeRecorder(2)
	r := Recorder(fake)
	r.Eventf(nil, nil, "Normal", "Reason", "Action", "100%% of %s", strings.Repeat("é", Limit))
	r.Eventf(nil, nil, "Normal", "Reason", "Action", "%s", "100%d")
	long, short := <-fake.Events, <-fake.Events
	const begins = "Normal Reason 100% of éé"
	if !strings.HasPrefix(long, begins) || !strings.HasSuffix(long, "é"+cutMark) || len(strings.TrimPrefix(long, "Normal Reason ")) > Limit {
		t.Errorf("the long note is %d bytes: %s", len(long), long)
	}
	if short != "Normal Reason 100%d" {
		t.Errorf("the short note is %q", short)
	}
}
