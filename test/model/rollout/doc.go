// Package rollout explores every order of events in a small pool, with the shipped
// [freshness.MakePlan] deciding what is deleted, hidden and shown, and a [Share] of a
// budget, which the shipped one gives.
//
// The pool has three members, and its template up to three revisions: the second may be
// one whose members never get ready, the third the first one again. Freshbind sees
// members and the template late, though in the order in which they changed. Claims take
// members, members fail, members of an older revision are born, the pool is paused,
// another replica becomes leader between any two plans or in the midst of one, and
// another pool takes its part of the budget, each as often as it likes. [Scenes] are
// what happens together.
//
// What must hold is written down in oracle.go, and shares nothing with the planner: what
// a step may do, and that from each state that was reached the rollout comes to its end
// once people and claims leave the pool alone. [Variants] are the same with one safeguard
// less; for each of them [Variant.Explore] finds a shortest history that breaks a promise.
//
// What the controller of pools does around a plan is written here a second time, in
// planning.go and writing.go, as plain values: it reads, compares with the last plan,
// publishes, and writes. TestSimulation in controllers/pools puts the real one to random
// tests.
package rollout
