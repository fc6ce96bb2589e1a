// Package routefeed fills a routes.Table from the API server: its own list and
// watch of Sandboxes and Pods, with nobody in between.
//
// A watch says what happened, and never that nothing did. To prove how old its
// view is at most, a follower asks beside the watch, by a consistent read, up to
// which resourceVersion anything can have happened; when the watch has delivered
// everything up to there, the view is as new as that question. On a quiet
// resource nothing would say so for a minute: the API server sends a bookmark
// two seconds before a watch ends. So watches are kept short.
package routefeed
