// Package controlplane runs a real Kubernetes control plane for tests and for
// the demo: etcd, any number of kube-apiservers, optionally
// kube-controller-manager, kube-scheduler and kwok's fake nodes, all on free
// loopback ports, all gone when the process that started them is gone.
//
// The programs are Go modules, pinned in tools/go.mod and built on demand into
// the user's cache (see [Tools]). envtest would fetch finished binaries
// instead, runs exactly one API server and cannot tie its processes to ours,
// so only its conventions (KUBEBUILDER_ASSETS) are kept.
//
// Linux and macOS only: it relies on flock and process groups.
package controlplane
