package jsonobject_test

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/jsonobject"
)

// Numbers are int64 where they can be, as the API machinery reads them.
func ExampleDecode() {
	object, err := jsonobject.Decode([]byte(`{"kind": "Pod", "metadata": {"generation": 3}, "cpu": 0.5}`))
	fmt.Println(object, err)
	fmt.Printf("%T\n", object["metadata"].(map[string]any)["generation"])
	// Output:
	// map[cpu:0.5 kind:Pod metadata:map[generation:3]] <nil>
	// int64
}

// The two objects of a review are read by whoever needs them.
func ExampleCut() {
	left, values, ok := jsonobject.Cut([]byte(`{"request": {"uid": "u", "object": {"a": 1}}}`), "request", "object", "oldObject")
	fmt.Printf("%s\n%s %t\n", left, values["object"], ok)
	// Output:
	// {"request": {"uid": "u", "object": null}}
	// {"a": 1} true
}
