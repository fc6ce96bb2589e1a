package app

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/routefeed"
	"github.com/freshbind/freshbind/webhooks"
)

// What the program is built with. No other file of it names a platform.
var builtIn = agentsandbox.Objects{}

const (
	platformName = agentsandbox.Name
	// barePodLabel is on Pods that may themselves be members of pools.
	barePodLabel = agentsandbox.PodPoolLabel
)

// admission is what the API server is told of the platform's writes.
func admission() platform.Admission { return agentsandbox.Admission() }

// kruiseAdmission is what it is told of those of OpenKruise Agents, where that is guarded.
func kruiseAdmission() platform.Admission { return kruise.Admission() }

// ownPolicies hold this user, who Freshbind is, to what it writes of one platform.
func ownPolicies(of platform.Admission, self string) webhooks.Policies {
	return webhooks.NewOwnPolicies(of, self, kruiseAdmission())
}

// kruiseName, kruiseKinds and kruiseRights are those of OpenKruise Agents.
const kruiseName = kruise.Name

func kruiseKinds() platform.Kinds { return kruise.Objects{}.Kinds() }

func kruiseRights() []rbacv1.PolicyRule { return kruise.Rights() }

// guarded are the platforms that the manager guards, the preferred one first.
func guarded(withKruise bool) []*manager.Guarded {
	all := []*manager.Guarded{{
		Name: platformName, Objects: builtIn, Admission: admission(), Kept: builtIn, Connect: connectGuarded,
	}}
	if withKruise {
		all = append(all, &manager.Guarded{
			Name: kruise.Name, Objects: kruise.Objects{}, Admission: kruiseAdmission(), Kept: kruise.Objects{}, Connect: connectKruise,
		})
	}
	return all
}

// suffixes are what the names of webhook configurations and policies can end with: an
// uninstall does not know which platforms were guarded.
func suffixes() []string {
	var out []string
	for _, g := range guarded(true) {
		out = append(out, g.Admission.Suffix)
	}
	return out
}

// connectKruise puts OpenKruise Agents together. Its own controllers look after claims.
func connectKruise(s manager.Sources) manager.Connected {
	p := &kruise.Platform{Stored: s.Stored, ByUID: s.ByUID, History: s.History, Defaults: s.Defaults, RepairOff: s.RepairOff, Turns: s.Turns}
	return manager.Connected{Guard: p, Deletions: p, Keep: &manager.Keep{Platform: p, Cached: kruise.CachedInspector{Platform: p, Cached: s.CachedNamespaces}}}
}

// connectGuarded puts agent-sandbox together from what it reads.
func connectGuarded(s manager.Sources) manager.Connected {
	p := &agentsandbox.Platform{
		Reader: s.Reader, ByUID: s.ByUID, Resolver: s.Resolver, History: s.History, Defaults: s.Defaults,
		SchedulerName: s.SchedulerName, RepairOff: s.RepairOff, Turns: s.Turns, CachedNode: s.CachedNode,
	}
	cached := agentsandbox.CachedInspector{Platform: p, Cached: s.CachedNamespaces}
	return manager.Connected{
		Guard: p, Deletions: p, PodDeletions: &agentsandbox.PodDeletions{Platform: p, API: s.API},
		Adviser: func(pools manager.PoolsIn) webhooks.Adviser {
			return &agentsandbox.Adviser{
				Platform: p, Lister: &agentsandbox.Lister{Cache: s.Cache, API: s.API, Resolver: s.Resolver, Pools: pools},
			}
		},
		Keep: &manager.Keep{
			Platform: p, Cached: cached, BarePods: agentsandbox.CachedBarePods{CachedInspector: cached}, Claims: p,
		},
	}
}

// commanded is a platform that commands know.
type commanded struct {
	name    string
	objects cli.Objects
	judging func(cli.Sources) cli.Judging
}

// commandedPlatforms are those of which a cluster has one, the preferred one first.
func commandedPlatforms() []commanded {
	return []commanded{{platformName, builtIn, judging}, {kruise.Name, kruise.Commands{}, judgingKruise}}
}

// commandedObjects are the objects of all of them: an uninstall does not know which platforms
// were guarded.
func commandedObjects() []cli.Objects {
	var out []cli.Objects
	for _, p := range commandedPlatforms() {
		out = append(out, p.objects)
	}
	return out
}

// judgingKruise judges members of OpenKruise Agents for commands. The labels of namespaces
// count less than what is asked for them.
func judgingKruise(s cli.Sources) cli.Judging {
	p := &kruise.Platform{Stored: platform.Stored{Reader: s.Reader, Resolver: s.Resolver}, ByUID: s.ByUID, History: s.History, Defaults: s.Defaults}
	if s.Namespaces == nil {
		return p
	}
	return kruise.CachedInspector{Platform: p, Cached: s.Namespaces}
}

// judging judges for commands, which read no more than they are given.
func judging(s cli.Sources) cli.Judging {
	p := &agentsandbox.Platform{Reader: s.Reader, Resolver: s.Resolver, History: s.History, Defaults: s.Defaults}
	if s.Namespaces == nil {
		return p
	}
	return agentsandbox.CachedInspector{Platform: p, Cached: s.Namespaces}
}

// predicted is a platform that simulate knows.
type predicted struct {
	kinds   platform.Kinds
	connect func(simulatedSources) simulatedPlatform
}

// predictedPlatforms are those whose documents simulate takes.
func predictedPlatforms() []predicted {
	return []predicted{{builtIn.Kinds(), predicting}, {kruiseKinds(), predictingKruise}}
}

// predicting puts together what predicts for agent-sandbox.
func predicting(s simulatedSources) simulatedPlatform {
	p := &agentsandbox.Platform{Reader: s.stored.Reader, Resolver: s.stored.Resolver, Defaults: s.defaults}
	adviser := &agentsandbox.Adviser{Platform: p, Lister: &agentsandbox.Lister{API: s.api, Resolver: s.stored.Resolver}}
	return simulatedPlatform{render: agentsandbox.RenderMember, adviser: adviser, claim: adviser.Claim, refuses: true}
}

// predictingKruise does for OpenKruise Agents.
func predictingKruise(s simulatedSources) simulatedPlatform {
	p := &kruise.Platform{Stored: s.stored, Defaults: s.defaults}
	return simulatedPlatform{render: p.Render, adviser: &kruise.Adviser{Platform: p, API: s.api}}
}

// routed says where the platform's sandboxes can be reached.
func routed() routefeed.Platform {
	kinds := builtIn.Kinds()
	return routefeed.Platform{
		Sandboxes: kinds.Member.GroupResource(), Versions: kinds.Versions, PodSelector: builtIn.MemberPods(),
		SandboxOf: agentsandbox.RouteOfSandbox, PodOf: agentsandbox.RouteOfPod,
	}
}
