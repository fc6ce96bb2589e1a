// Package webhooks is the admission plumbing: it decodes requests, has the
// platform take a snapshot, has freshness decide, and answers in the platform's
// language. Handlers have no side effects: the API server calls them again on
// every conflict.
package webhooks
