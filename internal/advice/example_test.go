package advice_test

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/advice"
)

// What kubectl prints as a warning when somebody edits a template.
func ExampleTemplateChange_Lines() {
	change := advice.TemplateChange{Pools: []advice.PoolChange{
		{Name: "python", Idle: 3, BecomeStale: 3, Rollout: advice.Rollout{Spec: "Recreate", Enforced: true}},
		{Name: "node", Idle: 2, BecomeStale: 2, Rollout: advice.Rollout{Spec: "OnReplenish", Enforced: true}},
	}}
	for _, line := range change.Lines() {
		fmt.Println(line)
	}
	// Output: 5 idle members become stale (python 3: Recreate deletes them; node 2: OnReplenish keeps serving them)
}
