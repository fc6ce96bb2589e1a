package app

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
)

// errAuditFound is what makes the exit code 1 when the judgement found something.
var errAuditFound = errors.New("findings that are stale or worse")

// NewAuditCommand returns the command that judges binds from the history of a cluster alone.
func NewAuditCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find stale binds from the history of a cluster, read-only",
		Long: "Audit watches the objects and Pods of a warm-pool system, and judges from what was stored, and in which order, whether\n" +
			"each claim got a fresh sandbox: of the template in force, alive, unused, and of the claim's own pool.\n" +
			"It only reads (get, list, watch), needs nothing installed, and trusts none of Freshbind's marks. It takes modes and\n" +
			"strategies from namespaces and pools, and with --config also from the manager's configuration file.",
		Args: auditNoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditWatchCommand(streams), newAuditCheckCommand(streams))
	return cmd
}

func auditNoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return auditUsage("unexpected argument %q (see %s --help)", args[0], cmd.CommandPath())
	}
	return nil
}

func auditUsage(format string, args ...any) error {
	return &ExitError{Code: exitUsage, Err: fmt.Errorf(format, args...)}
}

// platformUsage is the help of --platform where there is a cluster.
func platformUsage(do string) string {
	return "The warm-pool system to " + do + ", " + strings.Join(checker.Platforms(), " or ") + "; by default the first of these that the cluster has."
}

// checkPlatform takes none, too.
func checkPlatform(platform string) error {
	if platform != "" && !slices.Contains(checker.Platforms(), platform) {
		return auditUsage("--platform %s: use %s", platform, strings.Join(checker.Platforms(), " or "))
	}
	return nil
}

func auditCheckOutput(output *cli.Output) error {
	if err := output.Validate(); err != nil {
		return auditUsage("%w", err)
	}
	return nil
}

// auditResult turns findings into the documented exit code.
func auditResult(r *checker.Report) error {
	if n := r.Bad(); n > 0 {
		return &ExitError{Code: exitFailed, Err: fmt.Errorf("%d %w", n, errAuditFound)}
	}
	return nil
}

// auditConfigUsage is the help of --config, for both commands.
const auditConfigUsage = "The manager's configuration file, whose defaults and floors then count."

// auditOptions are what the manager's configuration says to the judgement; no file says nothing.
func auditOptions(file string) (checker.Options, error) {
	if file == "" {
		return checker.Options{}, nil
	}
	loaded, err := config.Load(file)
	if err != nil {
		return checker.Options{}, fmt.Errorf("--config: %w", err)
	}
	o := checker.Options{Strategy: loaded.Defaults.RolloutStrategy, Mode: loaded.Defaults.Enforcement}
	for _, f := range loaded.Floors {
		selector, err := metav1.LabelSelectorAsSelector(f.NamespaceSelector)
		if err != nil {
			return checker.Options{}, fmt.Errorf("--config: reading the namespace selector of a floor: %w", err)
		}
		o.Floors = append(o.Floors, checker.Floor{Namespaces: selector, Enforce: settings.Mode(f.MinimumEnforcement) == settings.Enforce, Strategy: f.MinimumStrategy})
	}
	return o, nil
}

// auditTalk returns where lines for people go: beside the report, unless a program reads the report.
func auditTalk(streams genericiooptions.IOStreams, output *cli.Output) io.Writer {
	if output.Machine() {
		return streams.ErrOut
	}
	return streams.Out
}
