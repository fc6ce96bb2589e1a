package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newRoutesCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "routes",
		Short: "Say where sandboxes can be reached, and never where one was",
		Long: "Routes commands are about where a sandbox can be reached. What they promise: a deleted sandbox is never\n" +
			"routed to again, and no answer is from a view of the cluster that is older than a bound.",
		Args: cobra.ArbitraryArgs,
		RunE: needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	cmd.AddCommand(newRoutesServeCommand(), newConformanceCommand(streams), newSentinelCommand())
	return cmd
}
