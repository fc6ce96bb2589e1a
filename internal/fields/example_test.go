package fields_test

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/fields"
)

// What has another type than expected is as if it were not there.
func ExampleObjects() {
	spec := map[string]any{"nodeName": "n1", "containers": []any{map[string]any{"name": "main"}, "no object"}}
	for _, container := range fields.Objects(spec, "containers") {
		fmt.Println(fields.String(spec, "nodeName"), fields.String(container, "name"))
	}
	// Output: n1 main
}
