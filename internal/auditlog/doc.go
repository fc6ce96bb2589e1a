// Package auditlog reads logs of Kubernetes' API server (audit.k8s.io/v1) and turns the writes in them into the history that
// internal/checker judges. It reads files only: one event a line, plain or compressed with gzip, in any order, as
// kube-apiserver writes them or as EKS, GKE and AKS wrap them.
//
// # Order
//
// What was stored is ordered by its resourceVersion, never by lines or clocks. One write has none in the log: a DELETE that
// the API server answers with a Status. It lies somewhere between the writes that had been answered when it arrived, and
// those that arrived after its answer; that is what the checker is told, and it decides nothing which depends on more.
//
// # What is missing
//
// A log has no start from which everything is known, and a policy may log less than the judgement takes. Coverage says what
// is missing. An object that was not seen may exist all the same.
package auditlog
