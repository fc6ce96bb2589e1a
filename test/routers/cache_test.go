package routers

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/agent-sandbox/sandbox-router/cache"
	"sigs.k8s.io/agent-sandbox/sandbox-router/proxy"

	"github.com/freshbind/freshbind/routes/routestest"
)

// routerCache is the unmodified cache of agent-sandbox's router, fed through its
// own informer. It runs in a synctest bubble: an event has taken effect when
// nothing in the bubble has anything left to do.
type routerCache struct {
	t      testing.TB
	env    routestest.Env
	server *apiServer
	cache  *cache.Cache
	stop   context.CancelFunc
	// synced is what the router waits for before it serves.
	synced *atomic.Bool
	// begun are the kit's time and the bubble's when the cache was made.
	begun, bubble time.Time
	// targets are what clients of this router ask for instead of an ID: the name
	// and the UID that their claims told them.
	targets map[string]proxy.Target
}

// routerCaches makes caches, and stops those of the cluster before.
func routerCaches(t testing.TB) routestest.NewTable {
	var running []*routerCache
	stop := func() {
		for _, c := range running {
			c.stop()
		}
		running = nil
	}
	t.Cleanup(stop)
	return func(env routestest.Env) routestest.Table {
		if len(running) > 0 && running[0].env.Cluster != env.Cluster {
			stop()
		}
		c := &routerCache{
			t: t, env: env, stop: func() {}, begun: env.Clock.Now(), bubble: time.Now(), targets: map[string]proxy.Target{},
		}
		c.Restart()
		running = append(running, c)
		return c
	}
}

func (c *routerCache) Restart() {
	c.stop()
	c.server = newAPIServer()
	var err error
	if c.cache, err = cache.New(cache.Options{Client: c.server, Log: logr.Discard()}); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.cache.Start(ctx)
	c.synced = &atomic.Bool{}
	go func(made *cache.Cache, synced *atomic.Bool) { synced.Store(made.WaitForSync(ctx)) }(c.cache, c.synced)
	synctest.Wait()
}

// follow lets as much time pass in the bubble as has passed for the kit.
func (c *routerCache) follow() {
	time.Sleep(c.env.Clock.Since(c.begun) - time.Since(c.bubble))
	synctest.Wait()
}

func (c *routerCache) Apply(e routestest.Event) {
	c.follow()
	switch {
	case e.Type == routestest.Listed:
		c.list(e)
	case e.Sandbox != nil && e.Type == routestest.Changed:
		c.tell(e.Sandbox)
	case e.Pod == nil || e.FromList || c.server.stream == nil:
		// What a list tells comes with it, as a whole.
	case e.Type == routestest.Changed:
		c.server.stream.Modify(pod(e.Pod))
	default:
		c.server.stream.Delete(pod(e.Pod))
	}
	synctest.Wait()
}

// tell has clients know a sandbox. The first that has an ID keeps it.
func (c *routerCache) tell(s *routestest.Sandbox) {
	id := s.ID
	if id == "" {
		id = s.Namespace + "--" + s.Name
	}
	if known, ok := c.targets[id]; !ok || known.Namespace == s.Namespace && known.ID == s.Name {
		c.targets[id] = proxy.Target{Namespace: s.Namespace, ID: s.Name, UID: s.UID, Port: 80}
	}
}

func (c *routerCache) list(e routestest.Event) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(e.Version, 10)}}
	for i := range e.Pods {
		list.Items = append(list.Items, *pod(&e.Pods[i]))
	}
	if c.server.stream != nil {
		c.server.expire()
	}
	// The informer lists after a pause, and the router asks now and then whether it
	// has: both pass while this waits.
	c.server.lists <- list
	for !c.synced.Load() {
		time.Sleep(time.Second)
	}
}

// Refresh does nothing: routers do not talk to each other.
func (*routerCache) Refresh(routestest.Message) {}

func (c *routerCache) Lookup(id string) (string, bool) {
	c.follow()
	target, ok := c.targets[id]
	if !ok || !c.synced.Load() {
		return "", false
	}
	to, source := target.Resolve("http", "cluster.local", "/", "", c.cache)
	return to.Hostname(), source == proxy.SourceCache || source == proxy.SourceCacheName
}

// pod is the Pod as agent-sandbox's controller makes it.
func pod(p *routestest.Pod) *corev1.Pod {
	controls := true
	ready := corev1.ConditionFalse
	if p.Ready {
		ready = corev1.ConditionTrue
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID), ResourceVersion: strconv.FormatUint(p.Version, 10),
			Labels: map[string]string{cache.PodSandboxNameHashLabel: "1"}, CreationTimestamp: metav1.NewTime(p.Created),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: cache.SandboxAPIGroup + "/v1beta1", Kind: cache.SandboxKind, Name: p.Sandbox, UID: types.UID(p.SandboxUID), Controller: &controls,
			}},
		},
		Status: corev1.PodStatus{PodIP: p.IP, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
	if p.Terminating {
		out.DeletionTimestamp = &metav1.Time{Time: p.Created}
	}
	return out
}
