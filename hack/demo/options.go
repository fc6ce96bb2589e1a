package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The variables that shape the demo.
const (
	envLag         = "DEMO_LAG"
	envLagOn       = "DEMO_LAG_ON"
	envRounds      = "DEMO_ROUNDS"
	envUpstream    = "DEMO_UPSTREAM"
	envKeep        = "DEMO_KEEP"
	envImages      = "DEMO_IMAGES"
	envWebhookHost = "DEMO_WEBHOOK_HOST"
	envContext     = "KUBE_CONTEXT"
	envPlatform    = "DEMO_PLATFORM"
)

const (
	defaultLag      = 1500 * time.Millisecond
	defaultRounds   = 3
	defaultUpstream = "v1.0.3"
	// defaultImages are two that a cluster with access to the usual place gets,
	// and that run until they are stopped.
	defaultImages = "nginx:1.28-alpine,nginx:1.29-alpine"
)

// options are what the environment asks for.
type options struct {
	// kruise: OpenKruise Agents are played instead.
	kruise bool
	lag    time.Duration
	// lagOn names what the controllers see that late, in the order of caches.
	lagOn    []string
	rounds   int
	upstream string
	// keep leaves everything running until Ctrl-C.
	keep bool
	// context is a context of the user's kubeconfig; "" to build a cluster.
	context     string
	webhookHost string
	// images are those of the template, in turn; empty for made-up ones that
	// only fake nodes run.
	images []string
}

// parseOptions reads the environment. An error names the variable.
func parseOptions(getenv func(string) string) (options, error) {
	o := options{
		lag: defaultLag, lagOn: []string{cacheTemplates}, rounds: defaultRounds, upstream: defaultUpstream,
		context: getenv(envContext), webhookHost: getenv(envWebhookHost),
	}
	for _, parse := range []struct {
		name string
		into func(string) error
	}{
		{envLag, func(text string) (err error) { o.lag, err = scenario.ParseLag(text); return err }},
		{envLagOn, func(text string) (err error) { o.lagOn, err = parseLagOn(text); return err }},
		{envRounds, func(text string) (err error) { o.rounds, err = scenario.ParseCount(text); return err }},
		{envUpstream, func(text string) (err error) { o.upstream, err = parseRelease(text); return err }},
		{envPlatform, func(text string) (err error) { o.kruise, err = parsePlatform(text); return err }},
		{envKeep, func(text string) (err error) { o.keep, err = parseBool(text); return err }},
		{envImages, func(text string) (err error) { o.images, err = parseImages(text); return err }},
	} {
		if text := getenv(parse.name); text != "" {
			if err := parse.into(text); err != nil {
				return options{}, fmt.Errorf("%s: %w", parse.name, err)
			}
		}
	}
	return o.complete(getenv)
}

// complete checks what the variables mean together.
func (o options) complete(getenv func(string) string) (options, error) {
	if o.kruise {
		for _, name := range []string{envContext, envUpstream, envLagOn} {
			if getenv(name) != "" {
				return options{}, fmt.Errorf("%s: not with %s=%s, which plays that system on the demo's own cluster; unset one of them", name, envPlatform, platformKruise)
			}
		}
	}
	if o.context == "" {
		if o.webhookHost != "" {
			return options{}, fmt.Errorf("%s: only with %s: the demo's own cluster calls 127.0.0.1", envWebhookHost, envContext)
		}
		return o, nil
	}
	for _, name := range []string{envLag, envLagOn, envUpstream} {
		if getenv(name) != "" {
			return options{}, fmt.Errorf("%s: not with %s: that cluster's own agent-sandbox is used, as it is; unset one of them", name, envContext)
		}
	}
	o.lag, o.lagOn, o.upstream = 0, nil, ""
	if len(o.images) == 0 {
		o.images = strings.Split(defaultImages, ",")
	}
	return o, nil
}

// The platforms.
const (
	platformAgentSandbox = "agent-sandbox"
	platformKruise       = "kruise"
)

func parsePlatform(text string) (isKruise bool, err error) {
	if text != platformAgentSandbox && text != platformKruise {
		return false, fmt.Errorf("%q is no platform: use %s or %s", text, platformAgentSandbox, platformKruise)
	}
	return text == platformKruise, nil
}

// What the controllers of the demo's own cluster can be made to see late.
const (
	cacheTemplates = "templates"
	cachePools     = "pools"
	cacheSandboxes = "sandboxes"
)

// caches are all of them, in the order in which they are named.
var caches = []struct {
	name     string
	resource schema.GroupResource
}{
	{cacheTemplates, upstream.SandboxTemplates}, {cachePools, upstream.SandboxWarmPools}, {cacheSandboxes, upstream.Sandboxes},
}

func parseLagOn(text string) ([]string, error) {
	asked := strings.Split(text, ",")
	var on, known []string
	for _, c := range caches {
		known = append(known, c.name)
		if slices.Contains(asked, c.name) {
			on = append(on, c.name)
		}
	}
	if len(on) != len(asked) {
		return nil, fmt.Errorf("%q is not a list of some of %s, each once, separated by commas", text, strings.Join(known, ", "))
	}
	return on, nil
}

// delays are what is seen late, and how late.
func (o options) delays() map[schema.GroupResource]time.Duration {
	delays := map[schema.GroupResource]time.Duration{}
	for _, c := range caches {
		if slices.Contains(o.lagOn, c.name) {
			delays[c.resource] = o.lag
		}
	}
	return delays
}

// settleMargin is for what a controller does with what it sees.
const settleMargin = time.Second

// settling is how long agent-sandbox may take to see that a pool is at rest. Until its
// cache shows the addresses of new members a claim waits for them (v1.0.3,
// warmCandidatesPendingError in extensions/controllers/sandboxclaim_controller.go): what
// it takes then is nobody's price but that cache's.
func (o options) settling() time.Duration {
	if o.lag == 0 || !slices.Contains(o.lagOn, cacheSandboxes) {
		return 0
	}
	return o.lag + settleMargin
}

// seenLate names what is seen late: "templates, pools and sandboxes".
func (o options) seenLate() string {
	first, last := o.lagOn[:len(o.lagOn)-1], o.lagOn[len(o.lagOn)-1]
	if len(first) == 0 {
		return last
	}
	return strings.Join(first, ", ") + " and " + last
}

func parseRelease(text string) (string, error) {
	if !slices.Contains(upstream.Releases(), text) {
		return "", fmt.Errorf("%q is not a release that is here: use one of %s", text, strings.Join(upstream.Releases(), ", "))
	}
	return text, nil
}

func parseBool(text string) (bool, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%q is neither 1 nor 0", text)
	}
	return on, nil
}

func parseImages(text string) ([]string, error) {
	images := strings.Split(text, ",")
	if len(images) < 2 || slices.Contains(images, "") {
		return nil, fmt.Errorf("%q is not a list of two or more images, separated by commas", text)
	}
	for i, image := range images {
		if image == images[(i+1)%len(images)] {
			return nil, fmt.Errorf("%s follows itself: an update has to change the image", image)
		}
	}
	return images, nil
}

// image is the one that the template has after so many updates.
func (o options) image(updates int) string {
	if len(o.images) == 0 {
		return fmt.Sprintf("sandbox:v%d", updates+1)
	}
	return o.images[updates%len(o.images)]
}
