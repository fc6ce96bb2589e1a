// Package chaos breaks what Freshbind stands on, one thing after the other, on one
// control plane with one platform and two replicas of Freshbind. While a fault lasts,
// claims are made and templates are edited. When it is over every claim has to get
// ready, the auditor (internal/checker) has to find nothing, no member may be passed
// over, and memory and goroutines have to return to where they were.
//
// TestChaos makes all faults with the real agent-sandbox, and TestKruiseChaos with the
// double of OpenKruise Agents those in which a platform is asked anything. Both end with
// a table of faults and invariants, which names the tests that show the same fault
// elsewhere in more detail, and what is made with agent-sandbox alone, with the reason.
// FRESHBIND_CHAOS=long makes more of each.
package chaos
