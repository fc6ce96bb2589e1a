// Package alerts tests the chart's alerting rules with Prometheus's own engine, on
// series that have the names and labels of what the program registers. It is a module
// of its own: that engine is large, and nothing that is shipped needs it. It reads those
// names and labels in metrics.txt, which a test of cmd/freshbind/app compares with the
// program.
package alerts
