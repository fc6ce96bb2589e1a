package app

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/controllers/recreate"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/routefeed"
)

// What this program is built with. Beside this file only those name a platform that put
// one together from what it reads: assemble.go and simulatecluster.go.
var (
	builtIn  = agentsandbox.Objects{}
	barePods = agentsandbox.BarePods{}
)

const platformName = agentsandbox.Name

// admission is what the API server is told of the platform's writes.
func admission() platform.Admission { return agentsandbox.Admission() }

// judging judges for commands, which read no more than they are given.
func judging(s cli.Sources) cli.Judging {
	return &agentsandbox.Platform{
		Reader: s.Reader, Resolver: s.Resolver, History: s.History, DefaultStrategy: s.DefaultStrategy, Floor: s.Floor,
	}
}

// routed says where the platform's sandboxes can be reached.
func routed() routefeed.Platform {
	kinds := builtIn.Kinds()
	return routefeed.Platform{
		Sandboxes: kinds.Member.GroupResource(), Versions: kinds.Versions, PodSelector: builtIn.MemberPods().String(),
		SandboxOf: agentsandbox.RouteOfSandbox, PodOf: agentsandbox.RouteOfPod,
	}
}

// livePlatform is one that reads what is stored.
type livePlatform interface {
	platform.Objects
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
	recreate.Inspector
	recreate.Snapshots
}

// foresight inspects with the floors that a cache shows.
func foresight(p *agentsandbox.Platform, floor func(ctx context.Context, namespace string) (freshness.Strategy, error)) recreate.Inspector {
	return agentsandbox.Foresight{Platform: p, KnownFloor: floor}
}
