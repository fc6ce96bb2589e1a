package app

import (
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/routefeed"
)

// What commands are built with. Beside this file only those name a platform that put one
// together from what it reads: simulatecluster.go, and for the manager
// internal/manager/assemble.go.
var builtIn = agentsandbox.Objects{}

const (
	platformName = agentsandbox.Name
	// barePodLabel is on Pods that may themselves be members of pools.
	barePodLabel = agentsandbox.PodPoolLabel
)

// admission is what the API server is told of the platform's writes.
func admission() platform.Admission { return agentsandbox.Admission() }

// judging judges for commands, which read no more than they are given.
func judging(s cli.Sources) cli.Judging {
	p := &agentsandbox.Platform{Reader: s.Reader, Resolver: s.Resolver, History: s.History, Defaults: s.Defaults}
	if s.Namespaces == nil {
		return p
	}
	return agentsandbox.CachedInspector{Platform: p, Cached: s.Namespaces}
}

// routed says where the platform's sandboxes can be reached.
func routed() routefeed.Platform {
	kinds := builtIn.Kinds()
	return routefeed.Platform{
		Sandboxes: kinds.Member.GroupResource(), Versions: kinds.Versions, PodSelector: builtIn.MemberPods().String(),
		SandboxOf: agentsandbox.RouteOfSandbox, PodOf: agentsandbox.RouteOfPod,
	}
}
