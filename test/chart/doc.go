// Package chart tests Freshbind's Helm chart with the real Helm: what it renders
// against the code, and an installation against a real API server, beside the
// real agent-sandbox and cert-manager.
package chart
