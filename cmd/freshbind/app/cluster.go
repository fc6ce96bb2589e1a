package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/controllers/history"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	programName = "freshbind"
	// pluginFile is the name of the file that kubectl runs for `kubectl
	// freshbind`, completionFile of the one that completes it.
	pluginFile     = "kubectl-" + programName
	completionFile = "kubectl_complete-" + programName
)

// calledAs is how whoever runs this program calls it, by the name of its file.
func calledAs(file string) string {
	if strings.HasPrefix(filepath.Base(file), pluginFile) {
		return "kubectl " + programName
	}
	return programName
}

// env is what commands about a cluster have in common.
type env struct {
	streams genericiooptions.IOStreams
	// program is how this program is called.
	program string
	connect func(flags *genericclioptions.ConfigFlags, defaults settings.Defaults, platform string) (*cli.Cluster, error)
	// screen is the terminal that streams.Out is; nil for none.
	screen *cli.Screen
}

func newEnv(streams genericiooptions.IOStreams) env {
	r := env{streams: streams, program: calledAs(os.Args[0]), screen: cli.NewScreen(streams.Out)}
	r.connect = func(flags *genericclioptions.ConfigFlags, d settings.Defaults, platform string) (*cli.Cluster, error) {
		return connect(streams, flags, d, platform)
	}
	return r
}

// readTimeout is how long one read may take: here nobody waits for it but a person.
const readTimeout = 30 * time.Second

// connect reaches the cluster of a kubeconfig, and the platform of that name there, "" for the
// one that it serves. What the API server warns of,
// Freshbind's own advice included, goes to the error stream.
func connect(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags, defaults settings.Defaults, of string) (*cli.Cluster, error) {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	cfg.QPS, cfg.WarningHandler = -1, rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	// Without a logger the client library complains of that after a while.
	logf.SetLogger(logr.Discard())
	if cfg.UserAgent == "" {
		cfg.UserAgent = programName + "-cli"
	}
	clock := &cli.ServerClock{}
	cfg.Wrap(clock.Wrap)
	c, err := client.NewWithWatch(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	getter, err := liveread.NewDynamicGetter(cfg)
	if err != nil {
		return nil, err
	}
	resolver, err := liveread.NewResolver(cfg, builtIn.Kinds().Versions...)
	if err != nil {
		return nil, err
	}
	byUID, err := liveread.NewUIDGetter(cfg)
	if err != nil {
		return nil, err
	}
	has, err := platformOf(resolver, of)
	if err != nil {
		return nil, err
	}
	return &cli.Cluster{
		Client: c, Resolver: resolver, Defaults: defaults, Now: clock.Now,
		Reader:  liveread.NewReader(getter, nil, liveread.WithTimeout(readTimeout)),
		ByUID:   liveread.NewReader(byUID, nil, liveread.WithTimeout(readTimeout)),
		Objects: has.objects,
		Judging: has.judging,
		History: func(r client.Reader) platform.History { return history.NewReader(r, has.objects) },
	}, nil
}

// platformOf is the platform of that name, or for "" the one that a cluster serves: the
// preferred one where it serves several, or none.
func platformOf(resolver platform.Resolver, name string) (commanded, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	all := commandedPlatforms()
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
		if name != "" {
			continue
		}
		_, err := resolver.Resource(ctx, p.objects.Kinds().Pool.GroupResource())
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, liveread.ErrNotServed) {
			return commanded{}, fmt.Errorf("looking for a warm-pool system in this cluster: %w", err)
		}
	}
	return all[0], nil
}

// target are the flags that say which cluster and what in it.
type target struct {
	env
	config                *genericclioptions.ConfigFlags
	enforcement, strategy string
	// configFile is the manager's; it says both, and floors.
	configFile string
	// platform is the name of the one to look at; "" for the one that the cluster has.
	platform string
	changed  func(flag string) bool

	// all and selector are used by commands that list.
	all      bool
	selector string
}

func newTarget(r env) *target {
	return &target{
		env: r, config: genericclioptions.NewConfigFlags(true),
		enforcement: string(settings.Audit), strategy: string(freshness.OnReplenish),
	}
}

func (t *target) addFlags(cmd *cobra.Command) {
	t.config.AddFlags(cmd.Flags())
	t.changed = cmd.Flags().Changed
	cmd.Flags().StringVar(&t.platform, "platform", "", platformUsage("look at"))
	cmd.Flags().StringVar(&t.configFile, "config", "", "The manager's configuration file, whose defaults and floors then count.")
	cmd.Flags().StringVar(&t.enforcement, "default-enforcement", t.enforcement, "The manager's default mode: audit or enforce.")
	cmd.Flags().StringVar(&t.strategy, "default-rollout-strategy", t.strategy,
		"The manager's default strategy: OnReplenish, Recreate or RollingUpdate.")
}

func (t *target) addListFlags(cmd *cobra.Command) {
	t.addFlags(cmd)
	cmd.Flags().BoolVarP(&t.all, "all-namespaces", "A", false, "Look at all namespaces.")
	cmd.Flags().StringVarP(&t.selector, "selector", "l", "", "Label selector of pools.")
}

// reachCluster connects, and returns the namespace to look at; "" for all.
func (t *target) reachCluster() (*cli.Cluster, string, error) {
	if err := checkPlatform(t.platform); err != nil {
		return nil, "", err
	}
	defaults, err := t.defaults()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := t.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read kubeconfig: %w", err)
	}
	if t.all {
		namespace = ""
	}
	c, err := t.connect(t.config, defaults, t.platform)
	return c, namespace, err
}

// defaults are what the manager was started with, by its file or by flags.
func (t *target) defaults() (settings.Defaults, error) {
	if t.configFile != "" {
		if t.changed("default-enforcement") || t.changed("default-rollout-strategy") {
			return settings.Defaults{}, usage("--config has the defaults: leave out --default-enforcement and --default-rollout-strategy")
		}
		f, err := config.Load(t.configFile)
		if err != nil {
			return settings.Defaults{}, usage("--config: %w", err)
		}
		d, err := defaultsOf(f.Defaults.Enforcement, f.Defaults.RolloutStrategy, f.Floors)
		if err != nil {
			return settings.Defaults{}, usage("--config: %w", err)
		}
		return d, nil
	}
	if _, err := settings.ParseMode(t.enforcement); err != nil {
		return settings.Defaults{}, usage("--default-enforcement: %w", err)
	}
	if _, err := settings.ParseStrategy(t.strategy); err != nil {
		return settings.Defaults{}, usage("--default-rollout-strategy: %w", err)
	}
	return defaultsOf(t.enforcement, t.strategy, nil)
}

func (t *target) selection(name string) (cli.Selection, error) {
	selector, err := labels.Parse(t.selector)
	if err != nil {
		return cli.Selection{}, usage("-l %q: %w", t.selector, err)
	}
	return cli.Selection{Name: name, Labels: selector}, nil
}

// usage makes an error that ends with the exit code of wrong usage.
func usage(format string, args ...any) error {
	return &ExitError{Code: cli.ExitUsage, Err: fmt.Errorf(format, args...)}
}

// atMost accepts up to n arguments, and says what they are.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("unexpected argument %q: accepted is %s (see %s --help)", args[n], what, cmd.CommandPath())
		}
		return nil
	}
}

// one requires exactly one argument.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s is required (see %s --help)", what, cmd.CommandPath())
		}
		return atMost(1, what)(cmd, args)
	}
}

// absent turns a NotFound error into a plain one.
func absent(err error, kind, name, namespace string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q does not exist in namespace %q", kind, name, namespace)
	}
	return err
}

// anyFlags has a wrong subcommand named before the flags that were meant for it.
var anyFlags = cobra.FParseErrWhitelist{UnknownFlags: true}

// suggestedWithin is how many typing errors still suggest a command.
const suggestedWithin = 2

// needsSubcommand is for commands that do nothing by themselves.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = suggestedWithin
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "? " + hint
	}
	return usage("unknown command %q for %q (%s)", args[0], cmd.CommandPath(), hint)
}

// completeNames completes names of one kind, each with a prefix.
func (t *target) completeNames(kinds ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, namespace, err := t.reachCluster()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []cobra.Completion
		for _, kind := range kinds {
			names, err := c.Names(completionContext(cmd), resourceOf(c.Objects.Kinds(), kind), namespace)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			for _, name := range names {
				if len(kinds) > 1 {
					name = kind + "/" + name
				}
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func completionContext(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
