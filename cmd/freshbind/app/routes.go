package app

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func newRoutesCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "routes",
		Short: "Tell gateways where sandboxes are, and never where one was",
		Long: "Routes commands help gateways to reach sandboxes. They promise that no request goes to a deleted sandbox, and\n" +
			"that no answer comes from a view of the cluster that is older than a bound.",
		Args: cobra.ArbitraryArgs,
		RunE: needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	cmd.AddCommand(newRoutesServeCommand(), newConformanceCommand(streams), newSentinelCommand())
	return cmd
}
