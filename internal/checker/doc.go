// Package checker judges, from the recorded history of a cluster alone, whether every claim got a sandbox that was fresh.
//
// It is the second opinion on the guard: it shares no code with it, reads none of its labels, and compares decoded API
// types where the guard compares hashes. What it knows of the platform (agent-sandbox v0.1 to v1.0) comes from upstream's
// source: how a member and a cold start are rendered (extensions/controllers/utils.go, sandboxclaim_controller.go
// createSandbox, sandboxwarmpool_controller.go buildSandboxCR), and in which order a bind is written (the claim names the
// member, then the Sandbox changes hands).
//
// # Order
//
// A History is fed what each resource's watch delivered. Across resources, order comes from resourceVersions: all resources
// of an API server whose data is in one etcd share one counter. (With --etcd-servers-overrides for pods, the judgements that
// involve Pods do not hold.)
//
// # The question
//
// For every bind, let b be its resourceVersion and t the one of the update (of the template, of the pool's reference to it,
// or of the claim's own env and volumes) since which the content that was bound is no longer what it should be. Let m be
// the last write that must have happened before the bind was admitted: the claim's creation, the claim version that first
// names the member, the previous version of the Sandbox. Then:
//
//   - the content is what is in force just before b: Fresh;
//   - m < t < b: Raced, the bind may have been admitted before the update;
//   - t < m: Stale, the bind was admitted after the update. Tolerated where the pool asked for it.
//
// What the recording cannot decide is Unjudged, and never counted as good or bad.
package checker
