// Cmd goes through all states of the model's whole cluster, prints how many there are,
// and tells for each safeguard what happens without it.
//
//	make model
package main

import (
	"fmt"
	"os"

	"github.com/freshbind/freshbind/test/model"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, v := range model.Variants() {
		if err := tell(v); err != nil {
			return err
		}
	}
	fmt.Print("What no admission can exclude, with all safeguards:\n\n")
	for _, v := range model.Gaps() {
		if err := tell(v); err != nil {
			return err
		}
	}
	r, err := new(model.Variant).Explore(model.Whole)
	if err != nil {
		return err
	}
	fmt.Printf("All safeguards: %d states, %d transitions, up to %d steps deep, in %.1f s: %s.\n",
		r.States, r.Transitions, r.Depth, r.Elapsed.Seconds(), r.Broken)
	if r.Broken != model.Kept {
		return fmt.Errorf("with all safeguards a promise is broken:\n%s", r.Story)
	}
	return nil
}

// tell prints a shortest story of what happens in the variant.
func tell(v model.Variant) error {
	r, err := v.Explore(v.Bounds())
	if err != nil {
		return err
	}
	if r.Broken != v.Want {
		return fmt.Errorf("%s: %s; want: %s", v.Name, r.Broken, v.Want)
	}
	fmt.Println(r.Story)
	return nil
}
