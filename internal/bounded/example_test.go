package bounded_test

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/bounded"
)

// A cache of 10 KiB keeps what was used last. An entry that would take more than a
// quarter of it is not kept.
func ExampleCache() {
	c := bounded.NewCache[string, string](10 << 10)
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		c.Add(key, "value of "+key, 2300)
	}
	c.Add("large", "value of large", 3000)
	for _, key := range []string{"a", "b", "e", "large"} {
		_, found := c.Get(key)
		fmt.Println(key, found)
	}
	fmt.Println(c.Len(), "entries")
	// Output:
	// a false
	// b true
	// e true
	// large false
	// 4 entries
}
