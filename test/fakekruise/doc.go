// Package fakekruise plays the controllers and clients of OpenKruise Agents, as they were
// in August 2026: the SandboxSet, SandboxClaim and Sandbox controllers, and the E2B
// server. They work from caches, which are as late as their connection makes them, send
// the writes that upstream sends, in its order, and go on after an error as it does.
//
//   - A SandboxSet's controller makes members from its cache, writes updateRevision only
//     when it reconciles, locks what it scales down or rolls, and deletes by name alone.
//   - Whoever takes a member looks at no more than 100 available ones, prefers those of
//     the updateRevision that its cache shows, falls back to older ones, and sends one PUT.
//   - The E2B server tries five times, after 0, 1, 3, 7 and 15 seconds, and only after
//     409 Conflict on the PUT; after any other answer, and any to a CREATE, its user
//     gets an error.
//   - A SandboxClaim is tried again two seconds after any error, until its claimTimeout
//     ends it for good; a SandboxSet that the cache does not show ends it at once.
//   - A webhook keeps everybody but the Sandbox's controller from evicting or deleting a
//     Pod as long as its Sandbox is there (NewPodWebhook).
//   - Who has written the status of a Sandbox or a SandboxClaim waits until the cache shows
//     that, for a minute at most.
//   - What is recycled gets its SandboxSet back in one write and its phase in another.
//
// Waits are divided by Options.Pace, so that nobody has to sit through them. It leaves out
// what no guard sees: runtimes, storage, quotas, speculative claims, pause and resume,
// checkpoints, and volumes.
package fakekruise
