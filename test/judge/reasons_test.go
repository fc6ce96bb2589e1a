package judge

import (
	"slices"
	"testing"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
)

// For each of the auditor's reasons a test of its own has a history that is called by that name.
func TestTheAuditorKnowsEveryRuleOfTheGuard(t *testing.T) {
	for _, reason := range freshness.Reasons() {
		if reason != freshness.Fresh && !slices.Contains(checker.Reasons(), checker.Reason(reason)) {
			t.Errorf("the auditor has no reason %s: add it to internal/checker, and a history to its tests", reason)
		}
	}
}
