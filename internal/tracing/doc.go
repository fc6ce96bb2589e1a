// Package tracing sends traces of admission calls, and of what is read for them,
// to a collector by OTLP.
package tracing
