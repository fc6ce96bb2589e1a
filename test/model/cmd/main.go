// Cmd goes through all states of both models, prints how many there are, and tells for
// each safeguard what happens without it.
//
//	make model
package main

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/test/model"
	"github.com/freshbind/freshbind/test/model/rollout"
)

func main() {
	for _, run := range []func() error{binds, rollouts} {
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "model:", err)
			os.Exit(1)
		}
	}
}

func binds() error {
	for _, v := range model.Variants() {
		if err := narrate(v); err != nil {
			return err
		}
	}
	fmt.Print("What no admission can exclude, with all safeguards:\n\n")
	for _, v := range model.Gaps() {
		if err := narrate(v); err != nil {
			return err
		}
	}
	r, err := new(model.Variant).Explore(model.Whole)
	if err != nil {
		return err
	}
	fmt.Printf("All safeguards of binds: %d states, %d transitions, up to %d steps deep, in %.1f s: %s.\n",
		r.States, r.Transitions, r.Depth, r.Elapsed.Seconds(), r.Broken)
	if r.Broken != model.Kept {
		return fmt.Errorf("with all safeguards a promise is broken:\n%s", r.Story)
	}
	return nil
}

// narrate prints a shortest story of what happens in the variant.
func narrate(v model.Variant) error {
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

func rollouts() error {
	for _, v := range rollout.Variants() {
		r := v.Explore(v.In, share, 0)
		if r.Broken != v.Want {
			return fmt.Errorf("%s: %s; want: %s", v.Name, r.Broken, v.Want)
		}
		fmt.Println(r.Story)
	}
	var all rollout.Result
	for _, b := range rollout.Scenes() {
		r := new(rollout.Variant).Explore(b, share, 0)
		fmt.Printf("%s: %s.\n", b.Name, r)
		if r.Broken != rollout.Kept {
			return fmt.Errorf("with all safeguards a promise is broken:\n%s", r.Story)
		}
		all.States, all.Transitions, all.Elapsed = all.States+r.States, all.Transitions+r.Transitions, all.Elapsed+r.Elapsed
		all.Depth = max(all.Depth, r.Depth)
	}
	fmt.Printf("All safeguards of rollouts: %s.\n", all)
	return nil
}

// share is what the shipped budget grants.
func share(size int, pool, another rollout.Charge, want int) int {
	b := pools.NewBudget(size, pools.Pace{}, func(types.NamespacedName, time.Duration) {})
	b.Settle("another", pools.Account{Replacing: another.Replacing, Stalled: another.Stalled}, true)
	return b.Take(types.NamespacedName{Name: "pool"}, "pool", pools.Account{Replacing: pool.Replacing, Stalled: pool.Stalled},
		pools.Grant{Replacements: want, Deletes: want}).Replacements
}
